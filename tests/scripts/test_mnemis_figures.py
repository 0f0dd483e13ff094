"""Names that were merged and entities that were kept apart, as a reader judges them."""

from __future__ import annotations

from mnemis_figures import GROUPS, describe_memory, find_kept_apart, find_merged, quote_name

from mgl.retrieval.fakes import WordEmbedder
from tests.memories.mnemis.ingesting import MARKS, Ingestor, taken_in, talk
from tests.memories.mnemis.sorting import state_of

TALK = talk(
    ("Ann", "I met Robert in Rome."), ("Bo", "He is Robert Miller now."), ("Ann", "I saw Robert.")
)


def same_robert(prompt: str) -> dict[str, str]:
    lines = prompt.splitlines()
    found = next(n for n, line in enumerate(lines) if line.startswith("n") and "Miller" in line)
    known = next(line.split()[0] for line in lines[found + 1 :] if "Robert" in line)
    others = [line.split()[0] for line in lines if line.startswith("n") and "Miller" not in line]
    return {lines[found].split()[0]: known, **dict.fromkeys(others, "new")}


async def test_a_name_that_was_decided_on_is_a_pair_and_one_that_is_written_alike_is_none() -> None:
    names = {"entities": ["Robert Miller"]}
    rome = {"entities": ["Robert", "Rome"]}
    ingestor = Ingestor(
        entities=[rome, names, {"entities": ["Robert"]}],
        entity_deduplication=[same_robert],
    )
    rows, state = await taken_in(ingestor, TALK)
    [(known, new)] = find_merged(rows)
    assert (known.name, new.name) == ("Robert", "Robert Miller")
    assert quote_name(TALK, state, known) == "Ann: I met Robert in Rome."
    assert quote_name(TALK, state, new) == "Bo: He is Robert Miller now."
    stages = set(MARKS) | {"entities_reflection", "edges_reflection"}
    assert stages == GROUPS["base graph"]


async def test_entities_that_are_alike_are_pairs_with_those_before_them() -> None:
    state = state_of(["Robert", "Rome", "Robert Miller", "Rob Miller"])
    apart = await find_kept_apart(WordEmbedder(512), state)
    names = {(one.name, other.name) for one, other in apart}
    assert names == {("Robert", "Robert Miller"), ("Robert Miller", "Rob Miller")}


async def test_what_a_model_did_not_tell_is_in_the_figures() -> None:
    rows, state = await taken_in(Ingestor(entity_summaries=["no"]), TALK)
    lines = describe_memory(state, rows)
    assert lines[0].startswith(f"3 episodes, {len(state.entities)} entities, ")
    assert "lost at entity_summaries: 3 (reply_invalid)" in lines
    assert lines[-1] == "the hierarchy stopped: it was not built"
