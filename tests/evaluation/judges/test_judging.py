"""What each judge asks, what it makes of a reply, and which replies are no verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mgl.benchmarks.base import Item
from mgl.errors import EngineRejected
from mgl.evaluation.judges import prompts
from mgl.evaluation.judges.judging import JUDGES, prefer
from mgl.evaluation.records import Answered, VerdictRecord
from mgl.llm.base import Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine, Scripted, ScriptedEngine
from mgl.prompt import Prompt
from mgl.types import Question

COLOURS = ("the blue one", "the red one")


def item(*golds: str, **fields: Any) -> Item:
    fields = {"id": "q1", **fields}
    return Item(source="s", question=Question("Where did Ann go?"), golds=golds, **fields)


def yes(reason: str = "Both name it.") -> str:
    return json.dumps({"reason": reason, "correct": True})


def no() -> str:
    return json.dumps({"reason": "It does not say.", "correct": False})


async def judged(
    name: str, of: Item, answered: str | Answered, *replies: Scripted, context: int = 32_768
) -> tuple[VerdictRecord, list[str]]:
    """The verdict, and the prompts that it took."""
    engine = ScriptedEngine(replies, context_tokens=context)
    said = Answered(answered) if isinstance(answered, str) else answered
    verdict = await JUDGES[name].judge(Client(engine, MemoryCallLog()), of, said)
    return verdict, [request.messages[-1].content for request in engine.requests]


def begins_as(text: str, prompt: Prompt) -> bool:
    return text.startswith(prompt.text.partition("{")[0])


@pytest.mark.parametrize("name", ["correctness", "entailment", "locomo", "moviechat", "dialsim"])
async def test_a_yes_and_a_no(name: str) -> None:
    right, (asked,) = await judged(name, item("Rome", "the city of Rome"), "To Rome.", yes())
    assert (right.score, right.reason) == (1.0, "Both name it.")
    assert json.loads(right.reply) == {"reason": "Both name it.", "correct": True}
    assert begins_as(asked, JUDGES[name].prompts[0])
    for part in ("Where did Ann go?", "Rome\nor: the city of Rome", "To Rome."):
        assert part in asked
    wrong, _ = await judged(name, item("Rome"), "To Bern.", no())
    assert wrong.score == 0.0


@pytest.mark.parametrize(
    "name", sorted(JUDGES.keys() - {"hgmem_comprehensiveness", "hgmem_diversity"})
)
async def test_prose_is_no_verdict(name: str) -> None:
    of = item("Rome", category="multi-session")
    answered = Answered("Zebras.", citations=({"quote": "Zebras live.", "verbatim": True},))
    verdict, asked = await judged(name, of, answered, *["It seems right to me."] * 5)
    assert (verdict.score, verdict.reply) == (None, "")
    assert verdict.reason
    assert asked


@pytest.mark.parametrize("name", sorted(JUDGES))
async def test_what_has_nothing_to_judge_by_is_not_judged(name: str) -> None:
    verdict, asked = await judged(name, item(category="multi-session"), "Rome")
    assert (verdict.score, asked) == (None, [])
    assert verdict.reason


async def test_a_prompt_that_does_not_fit_is_no_verdict() -> None:
    verdict, asked = await judged("correctness", item("Rome"), "word " * 900, context=1000)
    assert (verdict.score, asked) == (None, [])
    assert "context" in verdict.reason


async def test_an_engine_that_refuses_is_not_hidden() -> None:
    with pytest.raises(EngineRejected):
        await judged("correctness", item("Rome"), "Rome")


@pytest.mark.parametrize("name", sorted(JUDGES))
@pytest.mark.parametrize("seed", range(3))
async def test_any_reply_under_the_schema_is_a_verdict_or_none(name: str, seed: int) -> None:
    of = item("Rome", category="temporal-reasoning", passage="Ann went to Rome.")
    answered = Answered("Bern. Zurich.", citations=({"quote": "Bern", "verbatim": True},))
    client = Client(SchemaEngine(seed), MemoryCallLog())
    verdict = await JUDGES[name].judge(client, of, answered)
    assert verdict.score is None or 0 <= verdict.score <= 1


class TestMindGraph:
    async def test_what_the_cascade_takes_needs_no_model(self) -> None:
        verdict, asked = await judged("mindgraph", item("Rome"), "She went to Rome.")
        assert (verdict.score, verdict.reason, asked) == (1.0, "cascade: containment", [])

    async def test_the_rest_is_asked_as_printed(self) -> None:
        reply = json.dumps({"correct": True, "reason": "same"})
        verdict, (asked,) = await judged("mindgraph", item("Rome"), "The Eternal City.", reply)
        assert verdict.score == 1.0
        assert asked == prompts.MINDGRAPH.render(
            question="Where did Ann go?", gold="Rome", predicted="The Eternal City."
        )

    async def test_the_prompt_alone_is_asked_of_everything(self) -> None:
        reply = json.dumps({"correct": False, "reason": "strict"})
        verdict, asked = await judged("mindgraph_prompt", item("Rome"), "Rome", reply)
        assert (verdict.score, len(asked)) == (0.0, 1)

    @pytest.mark.parametrize(("said", "score"), [("(B)", 1.0), ("A", 0.0), ("Hm", 0.0)])
    async def test_a_choice_is_letter_against_letter(self, said: str, score: float) -> None:
        verdict, asked = await judged("mindgraph", item("B", choices=COLOURS), said)
        assert (verdict.score, asked) == (score, [])


class TestHgMem:
    @staticmethod
    def evaluation(level: int, score: int) -> str:
        return json.dumps({"level": level, "score": score, "explanation": "Most of it."})

    @pytest.mark.parametrize("name", ["hgmem_comprehensiveness", "hgmem_diversity"])
    async def test_a_score_within_its_level(self, name: str) -> None:
        of = item(passage="Ann went to Rome by train.")
        verdict, (asked,) = await judged(name, of, "By train.", self.evaluation(4, 75))
        assert (verdict.score, verdict.reason) == (0.75, "Most of it.")
        printed = (
            JUDGES[name]
            .prompts[0]
            .render(paragraph=of.passage, question=of.question.text, response="By train.")
        )
        assert asked == printed + prompts.EVALUATION_AS_JSON.text

    @pytest.mark.parametrize(
        ("level", "score", "holds"),
        [
            (1, 0, True),
            (1, 20, True),
            (2, 20, True),
            (5, 100, True),
            (4, 59, False),
            (1, 21, False),
        ],
    )
    async def test_the_levels_have_their_scores(self, level: int, score: int, holds: bool) -> None:
        of = item(passage="Ann went to Rome by train.")
        replies = [self.evaluation(level, score)] * 5
        verdict, _ = await judged("hgmem_diversity", of, "By train.", *replies)
        assert verdict.score == (score / 100 if holds else None)


class TestLocomo:
    @pytest.mark.parametrize("told", [{"labels": {"category": "5"}}, {"category": "5"}])
    async def test_an_adversarial_question_wants_an_abstention(self, told: dict[str, Any]) -> None:
        of = item("a trap", **told)
        verdict, (asked,) = await judged("locomo", of, "Not mentioned.", yes())
        assert verdict.score == 1.0
        assert begins_as(asked, prompts.ABSTENTION)
        assert "a trap" not in asked


class TestLongMemEval:
    @pytest.mark.parametrize(
        ("category", "prompt"),
        [
            ("single-session-user", prompts.REMEMBERED),
            ("single-session-assistant", prompts.REMEMBERED),
            ("multi-session", prompts.REMEMBERED),
            ("temporal-reasoning", prompts.TEMPORAL),
            ("knowledge-update", prompts.KNOWLEDGE_UPDATE),
            ("single-session-preference", prompts.PREFERENCE),
        ],
    )
    async def test_each_type_has_its_template(self, category: str, prompt: Prompt) -> None:
        verdict, (asked,) = await judged("longmemeval", item("18", category=category), "19", yes())
        assert verdict.score == 1.0
        assert asked == prompt.render(question="Where did Ann go?", gold="18", answer="19")

    async def test_the_templates_differ_by_what_they_forgive(self) -> None:
        assert "one more or one less" in prompts.TEMPORAL.text
        assert "one more or one less" not in prompts.REMEMBERED.text
        assert "held before" in prompts.KNOWLEDGE_UPDATE.text
        assert "Rubric: {gold}" in prompts.PREFERENCE.text

    async def test_an_id_in_abs_wants_an_abstention_whatever_its_type(self) -> None:
        of = item("She never told.", id="q7_abs", category="temporal-reasoning")
        _, (asked,) = await judged("longmemeval", of, "It is not known.", yes())
        assert begins_as(asked, prompts.ABSTENTION)
        assert "Why it cannot be answered: She never told." in asked

    async def test_another_type_is_no_verdict(self) -> None:
        verdict, asked = await judged("longmemeval", item("x", category="other"), "x")
        assert (verdict.score, asked) == (None, [])
        assert "other" in verdict.reason


@pytest.mark.parametrize("said", ["Monica", "Monica."])
async def test_dialsim_takes_the_reference_itself_without_a_model(said: str) -> None:
    verdict, asked = await judged("dialsim", item("Monica"), said)
    assert (verdict.score, asked) == (1.0, [])


class TestCitationSupport:
    async def test_it_is_the_share_of_sentences(self) -> None:
        answered = Answered(
            "Ann went to Rome. She flew.",
            citations=({"quote": "Ann is in Rome.", "verbatim": True},),
        )
        replies = [
            json.dumps({"reason": reason, "supported": supported})
            for reason, supported in (("Rome is named.", True), ("No word of a flight.", False))
        ]
        verdict, asked = await judged("citation_support", item(), answered, *replies)
        assert verdict.score == 0.5
        assert verdict.reason == "Rome is named. No word of a flight."
        assert ["Ann went to Rome." in text for text in asked] == [True, False]
        assert all("[1] Ann is in Rome." in text for text in asked)

    async def test_one_sentence_that_is_not_judged_leaves_no_share(self) -> None:
        answered = Answered("One. Two.", citations=({"quote": "One.", "verbatim": True},))
        replies = [json.dumps({"reason": "yes", "supported": True}), *["prose"] * 5]
        verdict, _ = await judged("citation_support", item(), answered, *replies)
        assert verdict.score is None


class TestPreferring:
    @staticmethod
    def reply(place: str) -> str:
        return json.dumps({"reason": "It says more.", "better": place})

    @pytest.mark.parametrize(
        ("place", "score"), [("first", 1.0), ("second", 0.0), ("neither", 0.5)]
    )
    @pytest.mark.parametrize("of", [item(passage="It rained and blew."), item("Rain.")])
    async def test_the_place_is_the_score(self, of: Item, place: str, score: float) -> None:
        engine = ScriptedEngine([self.reply(place)])
        verdict = await prefer(Client(engine, MemoryCallLog()), of, "It rained.", "It blew.")
        assert (verdict.score, verdict.reason) == (score, "It says more.")
        [request] = engine.requests
        said = request.messages[-1].content
        assert said.index("It rained.\n") < said.index("It blew.\n")
        assert (of.passage or of.golds[0]) in said

    async def test_prose_is_no_preference(self) -> None:
        client = Client(ScriptedEngine(["The first."] * 5), MemoryCallLog())
        verdict = await prefer(client, item(passage="x"), "a", "b")
        assert verdict.score is None
        assert verdict.reason

    async def test_without_anything_to_judge_by_nothing_is_asked(self) -> None:
        engine = ScriptedEngine([])
        verdict = await prefer(Client(engine, MemoryCallLog()), item(), "a", "b")
        assert (verdict.score, engine.requests) == (None, [])
        assert "neither a passage nor a gold" in verdict.reason


async def test_another_seed_is_another_call() -> None:
    engine = ScriptedEngine([yes(), no()])
    client = Client(engine, MemoryCallLog())
    judge, of, answered = JUDGES["correctness"], item("Rome"), Answered("Roma")
    first = await judge.judge(client, of, answered)
    again = await judge.judge(client, of, answered)
    other = await judge.judge(client, of, answered, sampling=Sampling(max_tokens=400, seed=1))
    assert (first.score, again.score, other.score) == (1.0, 1.0, 0.0)


def test_names_are_those_of_the_mapping() -> None:
    assert all(name == judge.name for name, judge in JUDGES.items())
    assert all(judge.prompts for judge in JUDGES.values())
