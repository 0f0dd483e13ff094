"""Episodes taken into the base graph by a model: what is asked, and what becomes of the replies.

The engine follows rules (``ingesting``): capitalised words are entities.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import EngineUnavailable
from mgl.llm.grammar import to_ebnf, to_lark
from mgl.llm.schemas import compile_schema
from mgl.memories.mnemis import reading
from mgl.memories.mnemis.edits import VOCABULARY
from mgl.memories.mnemis.entities import NameFound, check_name, is_said
from mgl.memories.mnemis.index import Index
from mgl.memories.mnemis.state import EMPTY, Entity, Episode, Fact, Mention, MnemisState
from mgl.memories.table import Table
from mgl.retrieval.fakes import WordEmbedder
from mgl.types import Span
from tests.memories.mnemis.engine import named, reader, sentences, taken_in, talk

TALK = talk(
    ("Ann", "I went to Rome with Cy. Cy saw the Louvre in Paris."),
    ("Bo", "Rome was hot."),
    ("Ann", "So was Paris, and Cy was ill."),
)


def names(state: MnemisState) -> list[str]:
    return [entity.name for entity in state.entities.values()]


async def test_entities_and_facts_stand_on_the_sentences_that_tell_of_them() -> None:
    rows, state = await taken_in(reader(), TALK)
    assert names(state) == ["Ann", "Rome", "Cy", "Louvre", "Paris", "Bo", "So"]
    rome = state.entities["e2"]
    assert rome.episodes == (0, 1)
    assert rome.summary == "Rome is named."
    assert rome.tags == ("thing",)
    said = {TALK.transcript.quote(mention.span) for mention in rome.mentions}
    assert said == {"I went to Rome with Cy.", "Rome was hot."}
    fact = state.facts["f1"]
    assert (fact.source, fact.target, fact.text) == ("e2", "e3", "I went to Rome with Cy.")
    assert TALK.transcript.quote(fact.mentions[0].span) == "I went to Rome with Cy."
    assert {row.chunk for row in rows} == {0, 1, 2}


async def test_an_entity_has_at_most_five_tags_of_three_words() -> None:
    """Appendix E."""
    tags = ["family member", "kid who laughs much", "anime lover", "pupil", "singer"]
    said = {"src": 1, "summary": "A child.", "tags": tags}
    told = reader(
        entity_summaries=[lambda prompt: dict.fromkeys(re.findall(r"(?m)^(e\d+) ", prompt), said)]
    )
    _, state = await taken_in(told, talk(("Ann", "I went to Rome.")))
    assert state.entities["e2"].tags == tuple(tags)
    (asked,) = (r for r in told.requests if "Describe each entity" in r.messages[0].content)
    schema: Any = asked.json_schema
    assert schema["properties"]["e2"]["properties"]["tags"]["maxItems"] == 5


async def test_a_name_and_a_fact_are_embedded_once_however_many_episodes_follow() -> None:
    embedder = WordEmbedder()
    source = talk(*[("Ann", f"Rome suits Cy{number}.") for number in range(6)])
    await taken_in(reader(), source, embedder=embedder)
    told = {"Ann", "Rome", "Cy0", "Rome suits Cy0."}
    assert {embedder.embedded.count(each) for each in told} <= {1, 2}  # as it came, as it is known


async def test_the_stages_of_an_episode_come_in_the_order_of_the_paper() -> None:
    ingestor = reader()
    await taken_in(ingestor, talk(("Ann", "I went to Rome with Cy.")))
    assert [stage for stage, _ in ingestor.asked] == [
        "entities",
        "entities_reflection",
        "entity_summaries",
        "edges",
        "edges_reflection",
    ]
    without = reader()
    await taken_in(without, talk(("Ann", "I went to Rome with Cy.")), reflect=False)
    assert [stage for stage, _ in without.asked] == ["entities", "entity_summaries", "edges"]


async def test_recent_episodes_are_shown_as_context(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [("Ann", f"Number {number}.") for number in range(4)]
    monkeypatch.setattr(reading, "RECENT", 2)
    ingestor = reader()
    await taken_in(ingestor, talk(*turns), reflect=False)
    context = [prompt.split("The text,")[0] for prompt in ingestor.prompts("entities")]
    assert "(nothing)" in context[0]
    assert "Ann: Number 1.\nAnn: Number 2.\n" in context[3]
    assert "Number 0" not in context[3]


async def test_the_model_decides_among_likely_entities() -> None:
    told = {"entities": ["Rome city", "Oslo"]}
    source = talk(("Ann", "I went to Rome."), ("Ann", "Rome city is not Oslo."))
    ingestor = reader(entities=[named, told], entity_deduplication=[{"n2": "e2"}])
    _, state = await taken_in(ingestor, source)
    assert names(state) == ["Ann", "Rome", "Oslo"]
    assert state.entities["e2"].names == ("Rome", "Rome city")
    (asked,) = ingestor.prompts("entity_deduplication")
    assert 'n2 "Rome city" in: Ann: Rome city is not Oslo.\n  e2 Rome: Rome is named.' in asked
    assert "Oslo: " not in asked
    assert "- Rome (Rome city): Rome is named." in ingestor.prompts("edges")[1]
    once_more = await taken_in(reader(), talk(("Ann", "x"), ("Bo", "Rome city!")), EMPTY)
    assert names(once_more[1]) == ["Ann", "Bo", "Rome"]


async def test_one_speaker_is_never_another() -> None:
    source = talk(("Ann Lee", "oh."), ("Ann Poe", "oh."))
    ingestor = reader()
    _, state = await taken_in(ingestor, source)
    assert names(state) == ["Ann Lee", "Ann Poe"]
    assert not ingestor.prompts("entity_deduplication")


async def test_the_first_person_is_who_speaks_and_what_is_no_name_is_refused() -> None:
    told = ["I", "user", "she", "…", "x" * 10_000, "Melbourne"]
    ingestor = reader(entities=[{"entities": told}])
    rows, state = await taken_in(ingestor, talk(("Ann", "Hello. I saw her, she is a user.")))
    assert names(state) == ["Ann"]
    refused = [row.reason for row in rows if row.outcome == "rejected"]
    assert refused == ["pronoun", "no_name", "name_too_long", "not_said"]
    assert all(len(str(row.payload)) < 1000 for row in rows)
    unknown = reader(entities=[{"entities": ["I"]}])
    rows, state = await taken_in(unknown, talk(("", "I am here.")))
    assert not state.entities


async def test_a_name_stands_in_the_sentence_that_has_most_of_it() -> None:
    """A name of a recent episode stands there."""
    told = ["Rome trip", "Oslo"]
    source = talk(("Ann", "I like Oslo."), ("Ann", "Nice. The trip to Rome was long."))
    ingestor = reader(entities=[{"entities": []}, {"entities": told}])
    rows, state = await taken_in(ingestor, source, reflect=False)
    places = {
        entity.name: (entity.episodes[-1], source.transcript.quote(entity.mentions[-1].span))
        for entity in state.entities.values()
    }
    assert places["Rome trip"] == (1, "The trip to Rome was long.")
    assert places["Oslo"] == (0, "I like Oslo.")
    assert [row.reason for row in rows if row.outcome == "repaired"] == ["sentence_guessed"]
    assert "- Oslo" in ingestor.prompts("edges")[-1]


@pytest.mark.parametrize("name", ["sister", "my sister"])
async def test_what_two_speakers_call_alike_is_one_entity_if_the_model_says_so(name: str) -> None:
    told = {"entities": [name]}
    said = [("Ann", "I met my sister."), ("Bo", "So did my sister."), ("Ann", "My sister is ill.")]

    def same(prompt: str) -> dict[str, str]:
        known = re.findall(r"^(n\d+) .*\n  (\w+) ", prompt, re.MULTILINE)
        return dict(known)

    for decide, count in ((same, 3), (None, 4)):
        replies: dict[str, Any] = {"entity_deduplication": [decide]} if decide else {}
        ingestor = reader(entities=[told], **replies)
        _, state = await taken_in(ingestor, talk(*said), reflect=False)
        (asked,) = ingestor.prompts("entity_deduplication")
        assert f'"{name}" in: Bo: So did my sister.\n  ' in asked
        assert len(state.entities) == count
        hers = next(e for e in state.entities.values() if e.name == name)
        assert hers.episodes == ((0, 1, 2) if decide else (0, 2))


@pytest.mark.parametrize(
    ("name", "ann", "bo"),
    [
        ("meine Schwester", "Ich sah meine Schwester.", "Meine Schwester ist auch hier."),
        ("Schwester", "Ich sah meine Schwester nicht.", "Meine Schwester ist auch hier."),
        ("Kollegin", "Kommt Kollegin heute noch vorbei?", "Kollegin kommt leider später."),
        ("ma sœur", "J'ai vu ma sœur.", "Ma sœur aussi."),
        ("моя сестра", "Здесь моя сестра.", "Моя сестра тоже."),
        ("我的姐姐", "我见到了我的姐姐。", "我的姐姐也是。"),
    ],
)
async def test_relatives_of_two_speakers_are_one_entity_only_if_the_model_says_so(
    name: str, ann: str, bo: str
) -> None:
    """In any language, and where it gives capitals to nouns or has none."""
    for speakers, count in ((("Ann", "Bo"), 2), (("Ann", "Ann"), 1)):
        ingestor = reader(entities=[{"entities": [name]}])
        said = list(zip(speakers, (ann, bo), strict=True))
        _, state = await taken_in(ingestor, talk(*said), reflect=False)
        theirs = [each for each in state.entities.values() if each.name == name]
        assert len(theirs) == count
        assert len(ingestor.prompts("entity_deduplication")) == count - 1


async def test_german_between_english_replies_is_german() -> None:
    reply = "That sounds like a long day at work. I hope that you and the others get some rest."
    ann, bo = "Kollegin kommt leider später.", "Kommt Kollegin heute noch vorbei?"
    ingestor = reader(entities=[{"entities": ["Kollegin"]}])
    said = [("Ann", ann), ("assistant", reply), ("assistant", reply), ("Bo", bo)]
    _, state = await taken_in(ingestor, talk(*said), reflect=False)
    assert names(state).count("Kollegin") == 2


async def test_a_proper_name_that_two_speakers_say_costs_no_call() -> None:
    for one, other in (("I saw Rome.", "So did I, Rome."), ("J'ai vu Rome.", "Rome aussi.")):
        ingestor = reader(entities=[{"entities": ["Rome"]}])
        _, state = await taken_in(ingestor, talk(("Ann", one), ("Bo", other)), reflect=False)
        assert names(state).count("Rome") == 1
        assert ingestor.prompts("entity_deduplication") == []


@pytest.mark.parametrize(
    "said", ["ich", "Ich", "je", "yo", "я", "我", "私", "나", "أنا", "मैं", "mir"]
)
def test_first_persons_of_any_language_are_the_speaker(said: str) -> None:
    assert check_name(said, "Bo") == NameFound("Bo", repaired="speaker")
    assert check_name(said, "").rejected == "pronoun"


@pytest.mark.parametrize("name", ["Ben", "Io", "Mimi", "Mir", "Mina"])
def test_a_name_that_is_a_first_person_elsewhere_is_kept(name: str) -> None:
    assert check_name(name, "Bo") == NameFound(name)


async def test_a_long_description_is_kept_and_shown_whole() -> None:
    told = " ".join(f"Rome has hill number {n}." for n in range(30))
    summaries = [lambda prompt: {
        each: {"src": 1, "summary": told, "tags": ["city"]}
        for each in re.findall(r"^(e\d+) ", prompt, re.MULTILINE)
    }]  # fmt: skip
    ingestor = reader(entity_summaries=summaries)
    source = talk(("Ann", "Rome is old."), ("Ann", "Rome is big."))
    _, state = await taken_in(ingestor, source, reflect=False)
    assert state.entities["e2"].summary == told
    assert f"e2 Rome: {told}\n" in ingestor.prompts("entity_summaries")[1]


@pytest.mark.parametrize(
    "stage",
    [
        "entities",
        "entities_reflection",
        "entity_deduplication",
        "entity_summaries",
        "edges",
        "edges_reflection",
        "edge_deduplication",
    ],
)
async def test_a_reply_that_stays_invalid_leaves_the_rest(stage: str) -> None:
    source = talk(("Ann", "I went to Rome with Cy."), ("Ann", "Rome suits Cy. Both Romes do!"))
    replies: dict[str, Any] = {stage: ["no JSON"]}
    rows, state = await taken_in(reader(**replies), source)
    failed = [row for row in rows if row.op == "reply"]
    assert failed
    assert {row.payload["what"] for row in failed} == {stage}
    assert {(row.outcome, row.reason) for row in failed} == {("rejected", "reply_invalid")}
    assert len(state.episodes) == 2
    assert "Ann" in names(state)
    assert ("Rome" in names(state)) == (stage != "entities")
    assert bool(state.facts) == (stage not in ("entities", "edges"))
    assert VOCABULARY.replay(rows) == state


async def test_an_engine_that_is_not_there_is_no_invalid_reply() -> None:
    def gone(prompt: str) -> Any:
        raise EngineUnavailable(f"gone at {prompt[:20]}", hint="start it")

    with pytest.raises(EngineUnavailable):
        await taken_in(reader(entity_summaries=[gone]), TALK)


WORDS = st.sampled_from(["Rome", "Oslo", "Bo", "Cy", "saw", "in", "left.", "rain", "! ", "Émile"])
TURNS = st.lists(
    st.tuples(st.sampled_from(["Ann", "Bo", ""]), st.lists(WORDS, min_size=1, max_size=12)),
    max_size=6,
)


@settings(max_examples=40, deadline=None)
@given(TURNS, st.sampled_from(["model", "terms"]))
async def test_a_log_replayed_gives_the_state_and_all_it_says_lies_in_its_episode(
    turns: list[tuple[str, list[str]]], extraction: str
) -> None:
    source = talk(*((speaker, " ".join(words)) for speaker, words in turns))
    rows, state = await taken_in(reader(), source, extraction=extraction)
    assert VOCABULARY.replay(rows) == state
    nodes: list[Entity | Fact] = [*state.entities.values(), *state.facts.values()]
    for node in nodes:
        for mention in node.mentions:
            held = state.episodes[mention.episode].span
            assert held.start <= mention.span.start < mention.span.end <= held.end
    speakers = {source.turns[n].speaker for each in state.episodes.values() for n in each.turns}
    assert speakers - {""} <= {name for each in state.entities.values() for name in each.names}


async def test_many_entities_are_taken_in_by_bounded_calls() -> None:
    text = " ".join(
        f"Name{n:03} met Name{n + 1:03}. It rained. It rained. It rained." for n in range(0, 120, 2)
    )
    ingestor = reader()
    _, state = await taken_in(ingestor, talk(("", text)))
    assert len(state.episodes) == 1
    assert len(state.entities) == 120
    assert len(state.facts) == 60
    for stage, prompt in ingestor.asked:
        if stage in ("entities", "edges"):
            assert len(sentences(prompt)) <= 20
        if stage == "entity_summaries":
            assert len(re.findall(r"^e\d+ ", prompt, re.MULTILINE)) <= 12
    assert len(ingestor.prompts("entity_summaries")) == 10


async def test_a_long_episode_is_asked_about_part_by_part() -> None:
    ingestor = reader()
    await taken_in(ingestor, talk(("", "Ann saw Bo. " * 25)), reflect=False)
    first, second = ingestor.prompts("entities")
    assert "(nothing)" in first
    context, rest = second.split("The text,")
    assert context.count("Ann saw Bo.") == 20
    assert [number for number, _ in sentences(rest)] == [21, 22, 23, 24, 25]
    assert len(ingestor.prompts("edges")) == 2


async def test_the_schemas_of_all_stages_can_be_compiled_for_every_notation() -> None:
    told = {"entities": ["Rome", 'the "Big" Apple', "Émile"]}
    turn = ("Ann", 'Émile saw Rome and the "Big" Apple.')
    again = ("Ann", "Émile left Rome. Rome city is far.")
    ingestor = reader(entities=[told, {"entities": ["Rome city", "Émile", "Rome"]}])
    await taken_in(ingestor, talk(turn, again))
    stages = {stage for stage, _ in ingestor.asked}
    assert stages >= {"entities", "entity_deduplication", "entity_summaries", "edges"}
    for request in ingestor.requests:
        assert request.json_schema is not None
        node = compile_schema(request.json_schema)
        assert to_lark(node)
        assert to_ebnf(node)


# Names


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Ann", NameFound("Ann")),
        (" “The\nLouvre” ", NameFound("The Louvre", repaired="name_cleaned")),
        ("User", NameFound("Bo", repaired="speaker")),
        ("myself", NameFound("Bo", repaired="speaker")),
        ("THEY", NameFound("THEY", rejected="pronoun")),
        ("  ", NameFound("", rejected="no_name")),
        ("🎉", NameFound("🎉", rejected="no_name")),
        ("y" * 81, NameFound("y" * 81, rejected="name_too_long")),
    ],
)
def test_a_name_is_cleaned_or_refused(said: str, kept: NameFound) -> None:
    assert check_name(said, "Bo") == kept


def test_a_name_is_said_where_a_longer_word_of_it_is() -> None:
    assert is_said("School of Art", "she paints at a school.")
    assert not is_said("Bank of Spain", "a cup of tea.")
    assert is_said("EU", "the eu")
    assert is_said("東京", "私は東京に行った。")


def _entity(number: int, name: str, summary: str = "") -> Entity:
    return Entity(f"e{number}", (name,), (Mention(0, Span("x", 0, 1)),), summary)


def test_likely_entities_share_words_or_are_like_by_name() -> None:
    index, names = Index(WordEmbedder(512)), ["the groups", "museum", "dog"]
    assert index.find_entities(names, 2) == [[], [], []]
    entities = [
        _entity(1, "Rome"),
        _entity(2, "Louvre", "A museum in Paris."),
        _entity(3, "support group"),
    ]
    said = Table({0: Episode(0, Span("x", 0, 1))})
    known = Table({each.id: each for each in entities})
    index.grow_candidates(MnemisState(episodes=said, entities=known))
    assert index.find_entities(names, 2) == [["e3"], ["e2"], []]
    assert index.find_entities([], 2) == []


def test_names_before_a_name_may_mean_the_same() -> None:
    names = ["Rome", "support group", "old Rome", "group"]
    index = Index(WordEmbedder(512))
    assert index.find_earlier(names, 2) == [[], [], [0], [1]]
    assert index.find_earlier(["Rome"], 2) == [[]]
