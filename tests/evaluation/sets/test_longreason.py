from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.longbench import CODE
from mgl.errors import EngineUnavailable, UsageError
from mgl.evaluation.sets.longreason import LongReasonConfig, build_longreason, estimated_tokens
from mgl.evaluation.sets.writing import MadeSet
from mgl.llm.base import Completion, Request
from mgl.observer import SilentObserver
from tests.evaluation.sets.judging import (
    Judge,
    asked_of,
    axis_of,
    client,
    dataset,
    item,
    label,
)

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


def test_the_papers_floors_and_mix_are_the_defaults() -> None:
    config = LongReasonConfig()
    assert (config.longbench_tokens, config.narrativeqa_words, config.loogle_tokens) == (
        80_000,
        120_000,
        50_000,
    )
    assert (config.longbench_items, config.narrativeqa_items, config.loogle_items) == (62, 118, 20)
    assert config.passes == 2
    assert estimated_tokens("four" * 10) == 10


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


async def test_a_letter_is_shown_with_the_choice_that_it_stands_for() -> None:
    judge = Judge(hard)
    one = item("q", "long", golds=("B",), choices=("Wind", "Rain", "Snow", "Sun"))
    await build(judge, {"longbench-v2": dataset({"long": LONG}, one)})
    assert "# Its gold answer\n(B) Rain\n" in judge.prompts[0]


@pytest.mark.parametrize(
    ("breadth", "depth", "kept"),
    [
        ("global", "global synthesis", True),
        ("global", "set aggregation", True),
        ("partial context reading", "set aggregation", True),
        ("multi-sparse", "global synthesis", False),
        ("global", "multi-hop chain", False),
        ("local", "lookup", False),
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


async def test_more_passes_must_all_agree() -> None:
    def late(request: Request) -> str:
        return label("local") if request.sampling.seed == 200 else hard(request)

    two = await build(Judge(hard), {"loogle": loogle("Why?")}, passes=3)
    assert len(two.items) == 1
    three = await build(Judge(late), {"loogle": loogle("Why?")}, passes=3)
    assert not three.items


async def test_prose_of_a_judge_is_no_label_and_is_counted() -> None:
    def prose(request: Request) -> str:
        return "It is rather global." if asked_of(request) == "Why?" else hard(request)

    made = await build(Judge(prose), {"loogle": loogle("Why?", "How?")})
    assert [kept.question.text for kept in made.items] == ["How?"]
    assert made.counts["loogle"]["unread"] == 1
    lost = made.rows[0]["breadth"][0]
    assert lost["label"] is None
    assert lost["reason"]


async def test_a_lost_engine_ends_the_build() -> None:
    judge = Judge(hard)

    def gone(_: Request) -> str:
        raise EngineUnavailable("the server is gone", hint="start it")

    judge._reply = gone
    with pytest.raises(EngineUnavailable):
        await build(judge, {"loogle": loogle("Why?")})


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


async def test_the_floor_of_novels_is_in_words() -> None:
    novels = dataset({"long": LONG}, item("a", "long"))
    words = len(LONG.split())
    made = await build(Judge(hard), {"narrativeqa": novels}, narrativeqa_words=words)
    assert len(made.items) == 1
    made = await build(Judge(hard), {"narrativeqa": novels}, narrativeqa_words=words + 1)
    assert not made.items


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


async def test_candidates_bound_what_is_judged() -> None:
    judge = Judge(hard)
    made = await build(judge, {"loogle": loogle("A?", "B?", "C?")}, candidates=2)
    assert made.counts["loogle"]["long"] == 3
    assert made.counts["loogle"]["labelled"] == len(made.rows) == 2
    assert len(judge.requests) == 8


async def test_a_long_text_is_cut_to_the_judges_context() -> None:
    judge = Judge(hard, context_tokens=2100)
    long = dataset({"long": "Ann came. " * 3000}, item("a", "long", category="longdep_qa"))
    made = await build(judge, {"loogle": long})
    assert len(made.items) == 1
    assert 200 < max(prompt.count("Ann came.") for prompt in judge.prompts) < 1000
    made = await build(judge, {"loogle": long}, reading_tokens=64)
    assert judge.prompts[-1].count("Ann came.") < 30


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


async def test_a_reply_drawn_anew_is_no_other_passes_reply() -> None:
    drawn: Counter[int] = Counter()

    def reply(request: Request) -> str:
        drawn[request.sampling.seed] += 1
        return "prose" if request.sampling.seed == 0 else hard(request)

    await build(Judge(reply), {"loogle": loogle("Why?")})
    assert drawn == {0: 2, 1: 2, 100: 2}


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
    with pytest.raises(UsageError, match="nothing to choose from"):
        await build(Judge(hard), {"nocha": loogle("Why?")})
    with pytest.raises(UsageError, match="has no room"):
        await build(Judge(hard, context_tokens=600), {"loogle": loogle("Why?")})
