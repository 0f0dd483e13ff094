"""The rules of Appendix E: what is told of a reply, and what is made of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from mgl.memories.mnemis.layers import CheckedReply, Group, check_groups

NAMES = ("Poodle", "Beagle", "Oak", "user", "Pine")


def group(name: str, *indexes: int) -> Group:
    return Group(name, indexes)


GOOD = (group("Dogs", 0, 1), group("Trees", 2, 4), group("Speaker", 3))


def check(
    *groups: Group, names: Sequence[str] = NAMES, known: Collection[str] = ()
) -> CheckedReply:
    return check_groups(groups, names, known, 2)


@pytest.mark.parametrize(
    ("bad", "said", "reason"),
    [
        (group("Dogs and Trees", 0, 2), '"Dogs and Trees" has the word "and"', "and_in"),
        (group("Dogs AND Trees", 0, 2), '"Dogs AND Trees" has the word', "and_in_name"),
        (group("…", 0, 2), '"…" is no name of a category', "no_name"),
        (group("X" * 10_000, 0, 2), "is no name of a category", "no_name"),
        (group("Pets", 0, 1), '"Dogs" and "Pets" have the same nodes', "same_children"),
        (group("Far", 77), '"Far" has 77, but the indexes are 0 to 4', "empty"),
        (group("Below", -1), '"Below" has -1, but', "empty"),
    ],
)
def test_a_category_that_breaks_a_rule_is_refused(bad: Group, said: str, reason: str) -> None:
    checked = check(*GOOD, bad)
    (problem,) = checked.problems
    assert said in problem
    assert checked.kept == GOOD
    assert [why.startswith(reason) for _, why in checked.refused] == [True]


def test_left_over_nodes_are_told_but_not_the_speaker_where_there_is_no_such_category() -> None:
    checked = check(group("Dogs", 0, 1))
    assert (checked.problems, checked.left) == (("2, 4 are in no category.",), 2)
    assert check(names=["I", "me", "User"]) == CheckedReply((), (), (), 0)


@pytest.mark.parametrize(
    ("groups", "known", "problem", "kept"),
    [
        (
            [group("Dogs", 0, 1, 3), GOOD[1]],
            (),
            '3 may be in "Speaker" alone.',
            [*GOOD[:2]],
        ),
        (GOOD[:2], ["speaker"], '3 must be in "Speaker".', [*GOOD]),
        (
            [*GOOD[:2], group("SPEAKER", 0)],
            (),
            '3 must be in "Speaker".',
            [*GOOD[:2], group("SPEAKER", 0, 3)],
        ),
    ],
)
def test_the_speaker_is_under_speaker_alone(
    groups: list[Group], known: list[str], problem: str, kept: list[Group]
) -> None:
    checked = check(*groups, known=known)
    assert (checked.problems, list(checked.kept)) == ((problem,), kept)


def test_categories_of_one_name_are_one() -> None:
    checked = check(group("Dogs", 0), group("the  dogs", 1, 0), *GOOD[1:])
    assert (checked.problems, checked.kept) == ((), GOOD)
