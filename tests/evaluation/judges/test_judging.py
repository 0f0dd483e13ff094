"""What each judge asks, what it makes of a reply, and which replies are no verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mgl.benchmarks.base import Item
from mgl.errors import EngineRejected
from mgl.evaluation.judges import prompts
from mgl.evaluation.judges.judging import JUDGES, read_again
from mgl.evaluation.records import Record, VerdictRecord
from mgl.llm.base import LLM
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine, Scripted, ScriptedEngine
from mgl.prompt import Prompt
from mgl.types import Question

COLOURS = ("the blue one", "the red one")
OFFICIAL = "Q: {question} A: {gold} M: {answer}"
YES = json.dumps({"reason": "Both name it.", "correct": True})
NO = json.dumps({"reason": "It does not say.", "correct": False})
CITED = ({"quote": "Ann is in Rome.", "verbatim": True},)


def item(*golds: str, **fields: Any) -> Item:
    fields = {"id": "q1", **fields}
    return Item(source="s", question=Question("Where did Ann go?"), golds=golds, **fields)


def make_record(text: str, **fields: Any) -> Record:
    return Record("m", {}, answer=text, **fields)


async def judged(
    name: str, of: Item, answered: str | Record, *replies: Scripted, context: int = 32_768
) -> tuple[VerdictRecord, list[str]]:
    """The verdict, and the prompts that it took."""
    engine = ScriptedEngine(replies, context_tokens=context)
    said = make_record(answered) if isinstance(answered, str) else answered
    verdict = await JUDGES[name].judge(Client(engine, MemoryCallLog()), of, said)
    return verdict, [request.messages[-1].content for request in engine.requests]


def begins_as(text: str, prompt: Prompt) -> bool:
    return text.startswith(prompt.text.partition("{")[0])


@pytest.mark.parametrize("name", ["correctness", "entailment", "locomo", "moviechat"])
async def test_a_yes_and_a_no(name: str) -> None:
    right, (asked,) = await judged(name, item("Rome", "the city of Rome"), "To Rome.", YES)
    assert (right.score, right.reason) == (1.0, "Both name it.")
    assert json.loads(right.reply) == {"reason": "Both name it.", "correct": True}
    assert begins_as(asked, JUDGES[name].prompts[0])
    for part in ("Where did Ann go?", "Rome\nor: the city of Rome", "To Rome."):
        assert part in asked
    wrong, _ = await judged(name, item("Rome"), "To Bern.", NO)
    assert wrong.score == 0.0


@pytest.mark.parametrize("name", sorted(JUDGES.keys() - {"longmemeval_official"}))
async def test_prose_is_no_verdict(name: str) -> None:
    of = item(
        *("Rome",), category="multi-session", passage="x", judge_prompt=OFFICIAL, rubric=("Rome",)
    )
    prose = ["It seems right to me."] * 5
    verdict, asked = await judged(name, of, make_record("Zebras.", citations=CITED), *prose)
    assert (verdict.score, verdict.reply) == (None, "")
    assert verdict.reason
    assert asked


@pytest.mark.parametrize("name", sorted(JUDGES))
async def test_what_has_nothing_to_judge_by_is_not_judged(name: str) -> None:
    verdict, asked = await judged(name, item(category="multi-session"), "Rome")
    assert (verdict.score, asked) == (None, [])
    assert verdict.reason


async def test_a_prompt_that_does_not_fit_is_no_verdict_and_a_refusal_is_not_hidden() -> None:
    verdict, asked = await judged("correctness", item("Rome"), "word " * 900, context=1000)
    assert (verdict.score, asked) == (None, [])
    assert "context" in verdict.reason
    with pytest.raises(EngineRejected):
        await judged("correctness", item("Rome"), "Rome")


@pytest.mark.parametrize("name", sorted(JUDGES))
async def test_any_reply_under_the_schema_is_a_verdict_or_none(name: str) -> None:
    given = {"category": "temporal-reasoning", "passage": "Rome.", "rubric": ("Rome", "Bern")}
    of = item("Rome", judge_prompt=OFFICIAL, **given)
    client = Client(SchemaEngine(1), MemoryCallLog())
    verdict = await JUDGES[name].judge(client, of, make_record("Bern. Zurich.", citations=CITED))
    assert verdict.score is None or 0 <= verdict.score <= 1


async def test_mindgraphs_cascade_needs_no_model_and_the_rest_is_asked_as_printed() -> None:
    verdict, asked = await judged("mindgraph", item("Rome"), "In Rome.")
    assert (verdict.score, verdict.reason, asked) == (1.0, "cascade: whole", [])
    reply = json.dumps({"correct": True, "reason": "same"})
    verdict, asked = await judged("mindgraph", item("Rome"), "The Eternal City.", reply)
    given = {"question": "Where did Ann go?", "gold": "Rome", "predicted": "The Eternal City."}
    assert (verdict.score, asked) == (1.0, [prompts.MINDGRAPH.render(**given)])
    verdict, asked = await judged("mindgraph_prompt", item("Rome"), "Rome", reply)
    assert (verdict.score, len(asked)) == (1.0, 1)


@pytest.mark.parametrize(("said", "score"), [("(B)", 1.0), ("A", 0.0), ("Hm", 0.0)])
async def test_mindgraphs_choice_is_letter_against_letter(said: str, score: float) -> None:
    verdict, asked = await judged("mindgraph", item("B", choices=COLOURS), said)
    assert (verdict.score, asked) == (score, [])


@pytest.mark.parametrize("name", ["hgmem_comprehensiveness", "hgmem_diversity"])
async def test_hgmems_score_is_what_is_given_whatever_its_level(name: str) -> None:
    of = item(passage="Ann went to Rome by train.")
    given = {"paragraph": of.passage, "question": of.question.text, "response": "By train."}
    printed = JUDGES[name].prompts[0].render(**given)
    for level, score in ((4, 75), (3, 65), (1, 100), (2, 20)):
        reply = json.dumps({"level": level, "score": score, "explanation": "Most of it."})
        verdict, (asked,) = await judged(name, of, "By train.", reply)
        assert (verdict.score, verdict.reason) == (score / 100, "Most of it.")
        assert asked == printed + prompts.EVALUATION_AS_JSON.text


@pytest.mark.parametrize(
    ("reply", "score"), [("Yes.", 1.0), ("no", 0.0), ("I would say yes", 1.0), ("Perhaps", 0.0)]
)
async def test_longmemevals_own_prompt_is_asked_and_read_as_its_script_does(
    reply: str, score: float
) -> None:
    engine = ScriptedEngine([reply])
    judge, of = JUDGES["longmemeval_official"], item("Rome", judge_prompt=OFFICIAL)
    verdict = await judge.judge(Client(engine, MemoryCallLog()), of, make_record("{gold}"))
    [request] = engine.requests
    assert (verdict.score, verdict.reply) == (score, reply)
    assert request.messages[-1].content == "Q: Where did Ann go? A: Rome M: {gold}"
    assert (request.sampling.max_tokens, request.json_schema) == (10, None)
    assert judge.official


@pytest.mark.parametrize(("label", "score"), [("CORRECT", 1.0), ("WRONG", 0.0)])
async def test_mem0s_own_prompt_gives_a_label(label: str, score: float) -> None:
    of = item("Rome", judge_prompt=OFFICIAL)
    verdict, (asked,) = await judged("locomo_mem0", of, "Bern", json.dumps({"label": label}))
    assert (verdict.score, asked) == (score, "Q: Where did Ann go? A: Rome M: Bern")


@pytest.mark.parametrize(("label", "score"), [("correct", 1.0), ("wrong", 0.0)])
async def test_a_reply_is_judged_by_whether_it_shows_the_cue(label: str, score: float) -> None:
    of = item(passage="Ann: I fell.", judge_prompt="Is {gold} in {answer}?")
    reply = json.dumps({"label": label, "reason": "So."})
    verdict, (asked,) = await judged("locomo_plus_official", of, "After your fall?", reply)
    assert (verdict.score, asked) == (score, "Is Ann: I fell. in After your fall??")
    own = json.dumps({"reason": "So.", "correct": score == 1})
    verdict, (asked,) = await judged("locomo_plus", of, "After your fall?", own)
    assert verdict.score == score
    assert "Earlier remark: Ann: I fell." in asked


@pytest.mark.parametrize("told", [{"labels": {"category": "5"}}, {"category": "5"}])
async def test_locomos_adversarial_questions_want_an_abstention(told: dict[str, Any]) -> None:
    verdict, (asked,) = await judged("locomo", item("a trap", **told), "Not mentioned.", YES)
    assert verdict.score == 1.0
    assert begins_as(asked, prompts.ABSTENTION)
    assert "a trap" not in asked


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
async def test_each_type_of_longmemeval_has_its_template(category: str, prompt: Prompt) -> None:
    verdict, (asked,) = await judged("longmemeval", item("18", category=category), "19", YES)
    assert verdict.score == 1.0
    assert asked == prompt.render(question="Where did Ann go?", gold="18", answer="19")


async def test_longmemevals_ids_in_abs_want_an_abstention_and_other_types_are_none() -> None:
    of = item("She never told.", id="q7_abs", category="temporal-reasoning")
    _, (asked,) = await judged("longmemeval", of, "It is not known.", YES)
    assert begins_as(asked, prompts.ABSTENTION)
    assert "Why it cannot be answered: She never told." in asked
    verdict, asked_ = await judged("longmemeval", item("x", category="other"), "x")
    assert (verdict.score, asked_) == (None, [])


@pytest.mark.parametrize(("name", "score"), [("beam", 0.75), ("beam_released", 0.5)])
async def test_beams_score_is_the_mean_over_the_rubric_and_its_code_drops_halves(
    name: str, score: float
) -> None:
    of = item(rubric=("Rome", "by train"))
    replies = [json.dumps({"score": each, "reason": "So."}) for each in (1.0, 0.5)]
    verdict, asked = await judged(name, of, "To Rome.", *replies)
    assert verdict.score == score
    for wanted, text in zip(of.rubric, asked, strict=True):
        given = {"question": "Where did Ann go?", "llm_response": "To Rome."}
        assert text == prompts.BEAM_RUBRIC.render(rubric_item=wanted, **given)
    verdict, _ = await judged(name, of, "To Rome.", replies[0], *["prose"] * 5)
    assert verdict.score is None


@pytest.mark.parametrize("name", ["beam", "beam_released"])
async def test_beams_order_is_of_the_lines_that_mean_an_event(name: str) -> None:
    of = item(rubric=("a", "b", "c"), category="event_ordering")
    same = {"a": "first", "b": "then", "c": "last"}

    def decide(request: Any) -> str:
        *_, first, second, _ = request.messages[-1].content.split("\n")
        event, line = (text.partition("snippet: ")[2] for text in (first, second))
        return json.dumps({"same": "YES" if same[event] in line else "NO"})

    for said, score, calls in (
        ("first\nthen\nlast", 1.0, 3),
        ("last\nthen\nfirst", 0.0, 3 + 2 + 1),
        ("first\n\nlast\nthen", 0.5, 1 + 2 + 1),  # an empty line means no event
    ):
        engine = ScriptedEngine([decide] * 9)
        verdict = await JUDGES[name].judge(Client(engine, MemoryCallLog()), of, make_record(said))
        assert verdict.score == pytest.approx(score)
        assert len(engine.requests) == calls

        async def ask(llm: LLM, text: str = said) -> VerdictRecord:
            return await JUDGES[name].judge(llm, of, make_record(text))

        assert await read_again(verdict, ask) == verdict.score
    verdict, _ = await judged(name, of, "first", *["prose"] * 5)
    assert verdict.score is None


async def test_citation_support_is_the_share_of_sentences_that_were_all_judged() -> None:
    answered = make_record("Ann went to Rome. She flew.", citations=CITED)
    replies = [
        json.dumps({"reason": reason, "supported": supported})
        for reason, supported in (("Rome is named.", True), ("No word of a flight.", False))
    ]
    verdict, asked = await judged("citation_support", item(), answered, *replies)
    assert (verdict.score, verdict.reason) == (0.5, "Rome is named. No word of a flight.")
    assert ["Ann went to Rome." in text for text in asked] == [True, False]
    assert all("[1] Ann is in Rome." in text for text in asked)
    verdict, _ = await judged("citation_support", item(), answered, replies[0], *["prose"] * 5)
    assert verdict.score is None


@pytest.mark.parametrize("said", ["Ann went to Rome. She flew.", "She flew. She flew. To Rome."])
async def test_the_replies_of_several_sentences_are_read_again_one_by_one(said: str) -> None:
    of, answered = item(), make_record(said, citations=CITED)
    parts = [json.dumps({"reason": "So.", "supported": n == 1}, indent=1) for n in range(3)]
    verdict, _ = await judged("citation_support", of, answered, *parts)
    assert verdict.score is not None

    async def ask(llm: LLM) -> VerdictRecord:
        return await JUDGES["citation_support"].judge(llm, of, answered)

    assert await read_again(verdict, ask) == verdict.score
    assert await read_again(replace(verdict, reply=parts[0]), ask) is None
