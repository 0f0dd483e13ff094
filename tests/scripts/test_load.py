"""``scripts/bench/load.py``: what a ledger finds wrong, and a short run with a kill."""

from __future__ import annotations

import json
from typing import Any

import load
import pytest
from ledger import Book, Said

WORDS = [f"zq{number:010x}q" for number in range(4)]


def make_book() -> tuple[Book, list[Said]]:
    """Three messages of one client, acknowledged, the second with its reply; one of another."""
    book = Book("diary")
    said = [book.say("ann", f"I said {word}", "append") for word in WORDS[:3]]
    other = book.say("bo", f"I said {WORDS[3]}", "append")
    for number, each in enumerate([*said, other]):
        each.id = f"{number}"
    said[1].reply = "I hear you"
    return book, [*said, other]


def export(*turns: tuple[str, str], forgotten: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "turns": [{"id": identity, "text": text} for identity, text in turns],
        "forgotten": [*forgotten],
    }


SAID = [(f"{number}", f"I said {word}") for number, word in enumerate(WORDS)]
REPLY = ("1+", "I hear you")
KEPT = [*SAID[:2], REPLY, *SAID[2:]]


@pytest.mark.parametrize(
    ("turns", "found"),
    [
        (KEPT, []),
        ([SAID[3], *KEPT[:4]], []),  # two clients have no order
        (KEPT[1:], ["lost"]),
        ([each for each in KEPT if each is not REPLY], ["lost"]),
        ([*KEPT, ("9", SAID[0][1])], ["doubled"]),
        ([SAID[1], REPLY, SAID[0], *SAID[2:]], ["disordered"]),
        ([("0", f"I say {WORDS[0]}"), *KEPT[1:]], ["changed"]),
        ([*SAID[:2], ("1+", "I know you"), *SAID[2:]], ["changed"]),
        ([*KEPT, ("9", "zq00000000ffq of another conversation")], ["foreign"]),
        ([*KEPT, ("8+", "I hear somebody")], ["foreign"]),
    ],
)
def test_a_ledger_finds_what_is_wrong(turns: list[tuple[str, str]], found: list[str]) -> None:
    book, _ = make_book()
    assert [kind for kind, _ in book.check(export(*turns))] == found


def test_a_ledger_finds_what_was_deleted() -> None:
    book, said = make_book()
    book.forget({"1"})
    assert book.forgotten == {said[1].word}
    left = [SAID[0], *SAID[2:]]
    assert not [*book.check(export(*left, forgotten=("1", "1+")))]
    for turn in (SAID[1], ("0+", f"You said {WORDS[1]}")):
        problems = book.check(export(*left, turn, forgotten=("1", "1+")))
        assert "reappeared" in [kind for kind, _ in problems]


def test_what_is_said_twice_may_be_stored_twice() -> None:
    book, said = make_book()
    said[0].most = 2
    assert not [*book.check(export(*KEPT, ("9", SAID[0][1])))]


def test_a_message_that_is_acknowledged_as_another_is_lost() -> None:
    book, said = make_book()
    book.forget({"0"})
    said[2].id = "0"  # what a server says that takes it for the deleted one
    problems = book.check(export(SAID[1], REPLY, SAID[3], forgotten=("0",)))
    assert [kind for kind, _ in problems] == ["lost"]


def test_clients_lose_nothing_when_the_server_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--clients", "4", "--requests", "80", "--pace", "0", "--kills", "1"]
    status = load.main(chosen)
    report = json.loads(capsys.readouterr().out)
    assert (status, report["problems"]) == (0, {}), report["first_problems"]
    assert len(report["restart_s"]) == 1
    assert report["acknowledged"]["messages"] > 10
