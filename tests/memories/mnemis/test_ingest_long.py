"""Long episodes, and many entities in one: the calls stay bounded."""

from __future__ import annotations

import re

from mgl.memories.mnemis.state import State
from mgl.types import Document
from tests.memories.mnemis.ingesting import Ingestor, sentences, taken_in, talk


def names(state: State) -> list[str]:
    return [entity.name for entity in state.entities.values()]


async def test_five_hundred_entities_are_taken_in_by_bounded_calls() -> None:
    text = " ".join(f"Name{n:03} met Name{n + 1:03}." for n in range(0, 500, 2))
    document = Document.from_text("many", text)
    ingestor = Ingestor()
    _, state = await taken_in(
        ingestor, document, most_entities=40, episode_tokens=100_000, most_facts=20
    )
    assert len(state.episodes) == 1
    assert len(state.entities) == 500
    assert len(state.facts) == 250
    for stage, prompt in ingestor.asked:
        if stage in ("entities", "edges"):
            assert len(sentences(prompt)) <= 20
        if stage == "entity_summaries":
            assert len(re.findall(r"^e\d+ ", prompt, re.MULTILINE)) <= 12
    assert len(ingestor.prompts("entity_summaries")) == 42


async def test_a_long_episode_is_asked_about_part_by_part() -> None:
    document = Document.from_text("long", "Ann saw Bo. " * 25)
    ingestor = Ingestor()
    await taken_in(ingestor, document, episode_tokens=1000, reflect=False)
    first, second = ingestor.prompts("entities")
    assert "(nothing)" in first
    context, rest = second.split("The text,")
    assert context.count("Ann saw Bo.") == 20
    assert [number for number, _ in sentences(rest)] == [21, 22, 23, 24, 25]
    assert len(ingestor.prompts("edges")) == 2


async def test_whoever_speaks_in_a_part_is_offered_for_its_facts() -> None:
    turns = [(" Ann\n", "so it goes. " * 22), ("Bo", "Rome is old.")]
    ingestor = Ingestor()
    _, state = await taken_in(ingestor, talk(*turns), episode="session", reflect=False)
    assert names(state) == ["Ann", "Bo", "Rome"]
    first, second = ingestor.prompts("entities")
    assert "\nAnn: [1] so it goes." in first
    assert "\nAnn: [21] so it goes. [22] so it goes.\nBo: [23] Rome is old." in second
    (asked,) = ingestor.prompts("edges")
    assert "- Ann: Ann is told of.\n- Bo: Bo is told of.\n- Rome: Rome is told of.\n" in asked


async def test_of_long_recent_episodes_the_end_is_shown() -> None:
    source = talk(("Ann", "Begin. " + "word " * 1000), ("Bo", "End."), ("Ann", "Now."))
    ingestor = Ingestor()
    await taken_in(ingestor, source, reflect=False)
    context = ingestor.prompts("entities")[2].split("The text,")[0]
    assert "Bo: End." in context
    assert "Begin." not in context


async def test_a_text_that_does_not_fit_the_context_is_cut() -> None:
    ingestor = Ingestor(context_tokens=1500, edges=[{"facts": []}])
    source = talk(("Ann", "Rome and Cy, " * 2000))
    _, state = await taken_in(ingestor, source, extraction_tokens=64)
    assert {"Ann", "Rome", "Cy"} == set(names(state))
    counts = await ingestor.llm.count_tokens([prompt for _, prompt in ingestor.asked])
    assert max(counts) < 1500
