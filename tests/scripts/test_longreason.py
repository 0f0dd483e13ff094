from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import longreason_prompts as prompts
import pytest
from hypothesis import given
from hypothesis import strategies as st
from longreason import LongReasonConfig, MadeSet, build_longreason, cut, summarised
from sensemaking import QUESTIONS

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.longbench import CODE
from mgl.errors import UsageError
from mgl.llm.base import Completion, Request
from mgl.observer import SilentObserver
from mgl.prompt import Prompt
from mgl.types import Document
from tests.scripts.judging import Judge, asked_of, axis_of, client, dataset, item, label

LOW: dict[str, Any] = {"longbench_tokens": 10, "narrativeqa_words": 10, "loogle_tokens": 10}
LONG = "Ann went out and it rained on the hills of the north. " * 4


def hard(request: Request) -> str:
    return label("global" if axis_of(request) == "breadth" else "global synthesis")


def loogle(*questions: str) -> Dataset:
    items = [
        item(f"q{number}", "long", question, category="longdep_qa")
        for number, question in enumerate(questions)
    ]
    return dataset({"long": LONG}, *items)


async def build(judge: Judge, datasets: dict[str, Dataset], **options: Any) -> MadeSet:
    config = LongReasonConfig(**{**LOW, **options})
    return await build_longreason(client(judge), datasets, config, SilentObserver())


async def test_an_item_that_is_kept_says_what_it_is() -> None:
    made = await build(Judge(hard), {"loogle": loogle("Why?")})
    [kept] = made.items
    assert (kept.id, kept.source, kept.category) == ("loogle/q0", "loogle/long", "loogle")
    assert kept.labels == {"kind": "longdep_qa", "breadth": "global", "depth": "global synthesis"}
    assert made.documents["loogle/long"].text == LONG
    [row] = made.rows
    assert row["breadth"] == [{"label": "global", "reason": "It says so."}] * 2
    assert (row["stable"], row["kept"], row["chosen"]) == (True, True, True)


async def test_the_judge_sees_the_text_the_scale_the_question_and_the_gold() -> None:
    judge = Judge(hard)
    await build(judge, {"loogle": loogle("Why did it rain?")})
    assert Counter(map(axis_of, judge.requests)) == {"breadth": 2, "depth": 2}
    for request in judge.requests:
        text = request.messages[0].content
        assert text.startswith(f"Text of a document:\n{LONG}\n\n")
        assert "# The question\nWhy did it rain?\n\n# Its gold answer\nRain\n" in text
        assert ("local. The answer lives" in text) == (axis_of(request) == "breadth")
    assert {request.sampling.seed for request in judge.requests} == {0, 100}
    assert {request.sampling.temperature for request in judge.requests} == {0.7}


@pytest.mark.parametrize(
    ("breadth", "depth", "kept"),
    [
        ("global", "global synthesis", True),
        ("partial context reading", "set aggregation", True),
        ("multi-sparse", "global synthesis", False),
        ("global", "multi-hop chain", False),
    ],
)
async def test_which_labels_are_kept(breadth: str, depth: str, kept: bool) -> None:
    judge = Judge(lambda request: label(breadth if axis_of(request) == "breadth" else depth))
    made = await build(judge, {"loogle": loogle("Why?")})
    assert len(made.items) == kept
    assert made.counts["loogle"]["stable"] == 1
    assert made.counts["loogle"]["kept"] == kept


async def test_labels_that_change_between_passes_leave_an_item_out() -> None:
    def wavering(request: Request) -> str:
        if asked_of(request) == "Why?" and axis_of(request) == "depth":
            return label(("set aggregation", "global synthesis")[request.sampling.seed // 100])
        return hard(request)

    made = await build(Judge(wavering), {"loogle": loogle("Why?", "How?")})
    assert [kept.question.text for kept in made.items] == ["How?"]
    counts = made.counts["loogle"]
    assert (counts["breadth_stable"], counts["depth_stable"], counts["stable"]) == (2, 1, 1)
    assert [row["stable"] for row in made.rows] == [False, True]
    assert [one["label"] for one in made.rows[0]["depth"]] == [
        "set aggregation",
        "global synthesis",
    ]


async def test_prose_of_a_judge_is_no_label_and_is_counted() -> None:
    def prose(request: Request) -> str:
        return "It is rather global." if asked_of(request) == "Why?" else hard(request)

    made = await build(Judge(prose), {"loogle": loogle("Why?", "How?")})
    assert [kept.question.text for kept in made.items] == ["How?"]
    assert made.counts["loogle"]["unread"] == 1
    lost = made.rows[0]["breadth"][0]
    assert lost["label"] is None
    assert lost["reason"]


async def test_floors_code_and_other_tasks_leave_items_out_before_they_are_judged() -> None:
    texts = {"long": LONG, "short": "Rain."}
    bench = dataset(
        texts,
        item("a", "long", category="Single-Document QA"),
        item("b", "short", category="Single-Document QA"),
        item("c", "long", category=CODE),
    )
    tasks = dataset(
        texts,
        item("a", "long", category="shortdep_qa"),
        item("b", "long", "How?", category="longdep_qa"),
    )
    novels = dataset({"long": LONG}, item("a", "long", "Who?"))
    judge = Judge(hard)
    made = await build(
        judge,
        {"longbench-v2": bench, "loogle": tasks, "narrativeqa": novels},
        narrativeqa_words=10**6,
    )
    assert [kept.id for kept in made.items] == ["longbench-v2/a", "loogle/b"]
    assert made.counts["longbench-v2"] | {"unread": 0} == {
        "items": 3,
        "asking": 2,
        "long": 1,
        "labelled": 1,
        "unread": 0,
        "breadth_stable": 1,
        "depth_stable": 1,
        "stable": 1,
        "kept": 1,
        "wanted": 62,
        "chosen": 1,
    }
    assert made.counts["narrativeqa"]["long"] == 0
    assert len(judge.requests) == 8


async def test_so_many_are_drawn_by_the_seed() -> None:
    questions = [f"Question {number}?" for number in range(12)]
    draws = set()
    for seed in range(5):
        made = await build(Judge(hard), {"loogle": loogle(*questions)}, loogle_items=4, seed=seed)
        again = await build(Judge(hard), {"loogle": loogle(*questions)}, loogle_items=4, seed=seed)
        assert made.items == again.items
        assert len(made.items) == 4
        assert sum(row["chosen"] for row in made.rows) == 4
        assert sum(row["kept"] for row in made.rows) == 12
        draws.add(tuple(kept.id for kept in made.items))
    assert len(draws) > 1


async def test_a_summary_may_be_read_instead_and_once_for_all_questions() -> None:
    def reply(request: Request) -> str:
        if "Summarise the text above" in request.messages[0].content:
            return '{"summary": "Ann came, often."}'
        return hard(request)

    judge = Judge(reply)
    long = dataset(
        {"long": "".join(f"Ann came in {year}. " for year in range(200))},
        item("a", "long", "A?", category="longdep_qa"),
        item("b", "long", "B?", category="longdep_qa"),
    )
    options = {"reads": "summary", "reading_tokens": 100, "chunk_tokens": 200, "summary_tokens": 32}
    made = await build(judge, {"loogle": long}, **options)
    assert len(made.items) == 2
    summaries = [prompt for prompt in judge.prompts if "Summarise the text above" in prompt]
    labels = [prompt for prompt in judge.prompts if prompt.startswith("Summary of a document:\n")]
    assert 3 <= len(summaries) <= 12
    assert len(labels) == 8
    assert all("Ann came, often." in prompt for prompt in labels)


async def test_a_document_whose_summary_cannot_be_read_leaves_its_questions_out() -> None:
    def reply(request: Request) -> str | Completion:
        prompt = request.messages[0].content
        if "Summarise the text above" in prompt:
            return "prose" if "Bo" in prompt else '{"summary": "Ann came, often."}'
        return hard(request)

    texts = {name: f"{name} came in the year. " * 200 for name in ("Ann", "Bo")}
    items = [item(name, name, category="longdep_qa") for name in texts]
    options = {"reads": "summary", "reading_tokens": 100, "chunk_tokens": 200, "summary_tokens": 32}
    made = await build(Judge(reply), {"loogle": dataset(texts, *items)}, **options)
    assert [kept.id for kept in made.items] == ["loogle/Ann"]
    assert made.counts["loogle"]["unread"] == 1
    [left] = [row for row in made.rows if row["id"] == "loogle/Bo"]
    assert left["breadth"][0]["label"] is None
    assert "no valid reply" in left["breadth"][0]["reason"]


async def test_what_cannot_work_is_said() -> None:
    with pytest.raises(UsageError):
        await build(Judge(hard), {"nocha": loogle("Why?")})
    with pytest.raises(UsageError):
        await build(Judge(hard, context_tokens=600), {"loogle": loogle("Why?")})


SIZES = LongReasonConfig(chunk_tokens=64, summary_tokens=32)


def refuse(request: Request) -> str:
    raise AssertionError(request.messages[0].content)


@given(st.text("ab .", max_size=400), st.integers(1, 60))
async def test_a_cut_text_fits_and_keeps_both_ends(text: str, tokens: int) -> None:
    llm = client(Judge(refuse))
    kept = await cut(llm, text, tokens)
    assert (await llm.count_tokens([kept]))[0] <= tokens
    if kept != text:
        head, _, tail = kept.partition("\n\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert (await llm.count_tokens([text]))[0] > tokens


async def test_summaries_are_summarised_until_they_fit() -> None:
    document = Document.from_text("a.txt", "Ann came to the old house again. " * 200)
    judge = Judge(lambda _: json.dumps({"summary": "Ann came, " + "and came " * 8 + "again."}))
    llm = client(judge)
    read = await summarised(llm, document, 60, SIZES, SilentObserver())
    assert (await llm.count_tokens([read]))[0] <= 60
    assert read.count("Ann came, and") >= 1
    texts = [prompt.partition("\n\nSummarise the text above")[0] for prompt in judge.prompts]
    assert any(text.startswith("Ann came, and") for text in texts), "a second level"
    assert "".join(texts).startswith("Ann came to the old house again. Ann came")


PINNED = {"BREADTH": "c8a82b052b91cbc9", "DEPTH": "6c8ac544d3c1d6cd"}
PINNED_OURS = {
    "LABEL": "20c4109786dfbd91",
    "SUMMARY": "610265d3c13085e1",
    "QUESTIONS": "16834f983b51427a",
}


@pytest.mark.parametrize("name", PINNED | PINNED_OURS)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = QUESTIONS if name == "QUESTIONS" else getattr(prompts, name)
    assert prompt.hash[:16] == (PINNED | PINNED_OURS)[name]
    assert prompt.source.startswith("MindGraph C." if name in PINNED else "ours")
    assert all("{" + variable + "}" in prompt.text for variable in prompt.variables)


@pytest.mark.papers
@pytest.mark.parametrize("name", PINNED)
def test_text_is_the_papers(name: str, papers: Path) -> None:
    """Whole but for the last paragraph of each, which says what is kept."""
    prompt: Prompt = getattr(prompts, name)
    printed = " ".join((papers / "mindgraph.txt").read_text().split())
    text = " ".join(prompt.text.split())
    assert text in printed
    after = printed.partition(text)[2].strip()
    assert after.startswith("The filtering step in §4.1 keeps only items")


@pytest.mark.parametrize(
    ("scale", "reply", "kept"),
    [
        (prompts.BREADTH, prompts.BreadthReply, prompts.KEPT_BREADTH),
        (prompts.DEPTH, prompts.DepthReply, prompts.KEPT_DEPTH),
    ],
)
def test_every_label_is_defined_in_its_scale(
    scale: Prompt, reply: type[prompts.AxisReply], kept: tuple[str, ...]
) -> None:
    labels = get_args(reply.model_fields["label"].annotation)
    places = [scale.text.index(f"\n{label}. ") for label in labels]
    assert places == sorted(places)
    assert scale.text.count("\nWhy ") == len(labels)
    assert tuple(labels[-2:]) == kept
    assert list(reply.model_fields) == ["reason", "label"]
