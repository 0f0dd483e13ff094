"""`mgl delete`: what would go is said and confirmed, and then nothing of it is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.lab import Lab, OwnModels
from mgl.models.adapters import write_adapter
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.types import Document, Turn
from tests.cli.conftest import Mgl, type_in
from tests.lab.echoing import EchoEngine
from tests.leftovers import find_left

WORDS = ["zorblat", "quaxby"]
BOOK = Document.from_text("zorblat.txt", "Ann gave the quaxby to Bo in Rome. They met the walker.")


@pytest.fixture
def memories(mgl_home: Path) -> dict[str, str]:
    """The ids of two memories of a document, and of one of a conversation."""
    own = OwnModels(EchoEngine(), WordEmbedder(), WordReranker())
    with Lab.open(own, home=mgl_home) as lab:
        ids = {
            kind: lab.build(BOOK, ["Who gave the quaxby?"], memory=kind).memory_id
            for kind in ("naive-rag", "mindgraph")
        }
        talk = lab.talk("diary")
        talk.append(Turn("1", "Ann", "I keep a zorblat."))
        talk.ask("What do I keep?")
        return {**ids, "talk": talk.id}


def test_what_would_go_is_said_and_nothing_goes_unless_it_is_confirmed(
    mgl: Mgl, memories: dict[str, str], mgl_home: Path
) -> None:
    write_adapter("mine", mgl_home, {"kind": "retriever", "licence": "", "sources": [BOOK.id]}, [])
    said = mgl("delete", "zorblat.txt", "--dry-run", code=0)
    first, *rest = said.stdout.splitlines()
    assert first == "the document zorblat.txt would be deleted: 55 characters"
    assert {line for line in rest if line.startswith("  memory")} == {
        f"  memory {memories['naive-rag']} (naive-rag)",
        f"  memory {memories['mindgraph']} (mindgraph): Who gave the quaxby?",
    }
    assert "1 question and 0 answers" in said.stdout
    assert "adapters trained on it, which are removed: mine" in said.stdout
    nobody = mgl("delete", "zorblat.txt", code=2)
    assert nobody.stdout == said.stdout
    assert "--yes" in nobody.stderr
    assert set(find_left(mgl_home, WORDS)) == {*WORDS}
    planned = json.loads(mgl("delete", "zorblat.txt", "--dry-run", "--json").stdout)
    done = mgl("delete", "zorblat.txt", "--yes", "--json")
    assert json.loads(done.stdout) == planned
    assert find_left(mgl_home, ["quaxby", "zorblat.txt", BOOK.id]) == {}
    gone = mgl("delete", "zorblat.txt", "--yes", code=6)
    assert "there is no document" in gone.stderr


def test_a_person_at_the_terminal_confirms(memories: dict[str, str], mgl_home: Path) -> None:
    kept = type_in("n\n", "delete", "diary")
    assert "the conversation diary would be deleted: 1 turn" in kept.stdout
    assert kept.stderr.splitlines()[-1] == "nothing was deleted"
    assert find_left(mgl_home, [memories["talk"]])
    gone = type_in("y\n", "delete", "diary")
    assert gone.exit_code == 0, gone.stderr
    assert gone.stdout.splitlines()[-1] == "deleted: diary, with 1 memory"
    assert find_left(mgl_home, [memories["talk"], "diary", "I keep a zorblat"]) == {}


def test_a_memory_goes_alone_by_its_id_its_beginning_or_its_kind(
    mgl: Mgl, memories: dict[str, str], mgl_home: Path
) -> None:
    first, last = memories["naive-rag"], memories["mindgraph"]
    said = mgl("delete", "zorblat.txt", "--memory", "naive-rag", "--dry-run")
    assert said.stdout == mgl("delete", first, "--dry-run").stdout
    assert said.stdout.startswith(f"zorblat.txt stays, since other memories are of it: {last}\n")
    mgl("delete", "zorblat.txt", "--memory", "gam", "--yes", code=2)
    done = mgl("delete", first[:10], "--yes", code=0)
    assert done.stdout.endswith("deleted: 1 memory\n")
    assert find_left(mgl_home, [first]) == {}
    assert [each["memory_id"] for each in json.loads(mgl("list", "--json").stdout)] == [
        memories["talk"],
        last,
    ]
    assert mgl("delete", last, "--yes").stdout.endswith("deleted: zorblat.txt, with 1 memory\n")
    assert find_left(mgl_home, ["quaxby", BOOK.id]) == {}


def test_an_exact_name_goes_before_what_begins_an_id(
    mgl: Mgl, memories: dict[str, str], mgl_home: Path
) -> None:
    name = memories["talk"][4:7]
    with Lab.open(OwnModels(EchoEngine()), home=mgl_home) as lab:
        lab.keep(Document.from_text(name, "Only kept."))
    assert mgl("delete", name, "--yes").stdout.endswith(f"deleted: {name}, with 0 memories\n")
    assert mgl("delete", name, "--yes").stdout.endswith("deleted: diary, with 1 memory\n")
