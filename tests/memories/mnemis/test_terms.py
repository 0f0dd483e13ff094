"""A base graph without a model."""

from __future__ import annotations

import random
from datetime import datetime

from mgl.memories.mnemis.edits import resolved
from mgl.memories.mnemis.state import State, replay
from mgl.types import Conversation, Document, Turn
from tests.memories.mnemis.ingesting import Ingestor, taken_in, talk

TALK = talk(
    ("Ann", "I saw Rome with my brother. My painting hung there."),
    ("Bo", "The painting is big. I like the painting, and your brother."),
    Turn("3", "Ann", "The brother of Bo was in Rome last week.", datetime(2023, 5, 8)),
)


def named(state: State) -> dict[str, tuple[int, ...]]:
    return {entity.name: entity.episodes for entity in state.entities.values()}


async def test_terms_and_speakers_are_entities_and_no_call_is_made() -> None:
    ingestor = Ingestor()
    rows, state = await taken_in(ingestor, TALK, extraction="terms")
    assert not ingestor.asked
    held = named(state)
    assert held["Ann"] == (0, 2)
    assert held["Bo"] == (1, 2)
    assert replay(filter(None, map(resolved, rows))) == state
    tags = {entity.name: entity.tags for entity in state.entities.values()}
    assert tags["Ann"] == ("speaker",)
    assert tags["painting"] == ("noun",)


async def test_a_term_that_is_known_late_gets_its_earlier_mentions() -> None:
    _, state = await taken_in(Ingestor(), TALK, extraction="terms")
    assert named(state)["painting"] == (0, 1)
    painting = next(each for each in state.entities.values() if each.name == "painting")
    said = [TALK.transcript.quote(mention.span) for mention in painting.mentions]
    assert said[0] == "My painting hung there."
    assert painting.summary.startswith("Ann: My painting hung there. Bo: The painting is big.")


async def test_a_sentence_joins_the_terms_that_follow_each_other_in_it() -> None:
    _, state = await taken_in(Ingestor(), TALK, extraction="terms")
    last = [fact for fact in state.facts.values() if fact.episodes == (2,)]
    ends = [(state.entities[each.source].name, state.entities[each.target].name) for each in last]
    assert ends == [("Ann", "brother"), ("brother", "Bo"), ("Bo", "Rome")]
    assert {each.text for each in last} == {"Ann: The brother of Bo was in Rome last week."}
    assert {each.valid_at for each in last} == {datetime(2023, 5, 1)}


async def test_in_a_session_words_of_time_are_read_against_their_own_turn() -> None:
    source = talk(
        Turn("1", "Ann", "I saw Rome yesterday, and Rome was hot.", datetime(2023, 5, 8)),
        Turn("2", "Bo", "I saw Oslo yesterday, and Oslo was hot.", datetime(2023, 8, 20)),
        Turn("3", "Ann", "I saw Quito yesterday, and Quito was hot."),
    )
    _, state = await taken_in(Ingestor(), source, extraction="terms", episode="session")
    times = {state.entities[fact.target].name: fact.valid_at for fact in state.facts.values()}
    assert times == {
        "Rome": datetime(2023, 5, 7),
        "Oslo": datetime(2023, 8, 19),
        "Quito": None,
    }


async def test_an_entity_keeps_its_id_when_the_conversation_grows() -> None:
    draw = random.Random(3)
    words = ["Rome", "Mel", "Melanie Poe", "the painting", "my dog", "saw", "and", "Dr. Poe", "ran"]
    turns = tuple(
        Turn(str(n), draw.choice(["Ann", "Bo"]), " ".join(draw.choices(words, k=8)) + ".")
        for n in range(20)
    )
    _, state = await taken_in(Ingestor(), Conversation("x", "x", turns), extraction="terms")
    grown: State | None = None
    for count in (5, 12, 20):
        part = Conversation("x", "x", turns[:count])
        _, grown = await taken_in(Ingestor(), part, grown or State(), extraction="terms")
        for identity, entity in grown.entities.items():
            assert entity.name == state.entities[identity].name
    assert grown == state


async def test_the_same_text_again_adds_no_entity_and_no_fact() -> None:
    text = "My dog saw Rome. The dog of Rome saw a dog."
    _, once = await taken_in(Ingestor(), talk(("Ann", text)), extraction="terms")
    _, twice = await taken_in(Ingestor(), talk(("Ann", text), ("Ann", text)), extraction="terms")
    assert named(twice).keys() == named(once).keys()
    assert twice.facts.keys() == once.facts.keys()


async def test_a_document_is_taken_in_whole_paragraphs() -> None:
    text = (
        "The ferryman saw the river.\n\nA ferryman, by his river, sees rivers. The river ran.\n\n"
    )
    document = Document.from_text("river", text * 3)
    _, state = await taken_in(Ingestor(), document, extraction="terms", episode_tokens=16)
    assert set(named(state)) == {"river", "ferryman"}
    assert len(state.episodes) > 2
    assert 0 in named(state)["ferryman"]


async def test_that_a_picture_was_sent_is_no_term() -> None:
    turn = ("Ann", "ok [image: a photo of the lake] ")
    _, state = await taken_in(Ingestor(), talk(turn, turn), extraction="terms")
    assert "lake" in named(state)
    assert "image" not in named(state)


async def test_terms_that_are_no_names_are_passed_over() -> None:
    _, state = await taken_in(
        Ingestor(), talk(("", "…!"), ("—", "¿?"), ("Ann", "ok")), extraction="terms"
    )
    assert list(named(state)) == ["Ann"]
