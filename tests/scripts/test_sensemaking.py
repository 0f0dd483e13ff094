from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest
from longreason import MadeSet
from sensemaking import SenseMakingConfig, build_sensemaking

from mgl.benchmarks.base import Dataset
from mgl.errors import UsageError
from mgl.llm.base import Request
from mgl.observer import SilentObserver
from tests.scripts.judging import Judge, client, dataset, item

LONG = "".join(f"In year {year} the fund of the north grew by some. " for year in range(80))


SINGLE = "Single-Document QA"


def wanted(request: Request) -> int:
    found = re.search(r"Make (\d+) questions", request.messages[0].content)
    assert found is not None
    return int(found[1])


def asks(request: Request) -> str:
    passage = request.messages[0].content.removeprefix("Text:\n")[:24]
    again = f" ({request.sampling.seed})" if request.sampling.seed else ""
    asked = [
        {"parts": ["one part", "another"], "question": f"How  does {number} of {passage}{again}?"}
        for number in range(wanted(request))
    ]
    return json.dumps({"questions": asked})


def bench(**texts: str) -> Dataset:
    items = [
        item(
            f"{name}{number}",
            name,
            category=SINGLE if "_several" not in name else "Multi-Document QA",
            labels={"sub_domain": name.split("_")[0]},
        )
        for name in texts
        for number in range(2)
    ]
    return dataset(texts, *items)


async def build(judge: Judge, data: Dataset, **options: Any) -> MadeSet:
    config = SenseMakingConfig(**{"floor_tokens": 10, "totals": {}, **options})
    return await build_sensemaking(client(judge), data, config, SilentObserver())


async def test_questions_of_a_document_that_fits() -> None:
    judge = Judge(asks)
    made = await build(judge, bench(Legal=LONG))
    assert [one.id for one in made.items] == [f"Legal/q{number}" for number in range(5)]
    first = made.items[0]
    assert first.question.text.startswith("How does 0 of")
    assert (first.golds, first.category) == ((), "Legal")
    assert (first.passage, first.evidence) == (LONG, (f"0-{len(LONG)}",))
    assert len(judge.requests) == 1
    assert judge.prompts[0].startswith(f"Text:\n{LONG}\n\nMake 5 questions")
    assert made.counts["Legal"] == {"passages": 1, "unread": 0, "questions": 5}
    assert made.rows[0]["questions"][0]["parts"] == ["one part", "another"]


async def test_a_long_document_is_asked_about_in_passages_from_all_over_it() -> None:
    judge = Judge(asks)
    made = await build(judge, bench(Legal=LONG), questions=3, passage_tokens=120)
    assert [wanted(request) for request in judge.requests] == [1, 1, 1]
    places = [tuple(map(int, one.evidence[0].split("-"))) for one in made.items]
    assert places == sorted(places)
    assert len(set(places)) == 3
    assert all(LONG[start:end] == one.passage for (start, end), one in zip(
        places, made.items, strict=True))  # fmt: skip
    other = await build(Judge(asks), bench(Legal=LONG), questions=3, passage_tokens=120, seed=9)
    assert [one.evidence for one in other.items] != [one.evidence for one in made.items]


async def test_floor_domain_and_number_decide_which_documents_are_used() -> None:
    data = bench(Legal=LONG, Financial="Short.", Academic=f"{LONG}!", Governmental=f"{LONG}?")
    made = await build(Judge(asks), data)
    assert list(made.counts) == ["Legal", "Governmental"]
    made = await build(Judge(asks), data, domains=[])
    assert list(made.counts) == ["Legal", "Academic", "Governmental"]
    made = await build(Judge(asks), data, documents=1)
    assert len(made.counts) == 1
    with pytest.raises(UsageError):
        await build(Judge(asks), data, domains=["Financial"])


async def test_the_set_is_of_single_documents_and_as_large_as_the_papers() -> None:
    """HGMem, Appendix A and Table 4: 100, 98 and 55 queries of 20, 22 and 7 documents."""
    counts = {"Financial": 20, "Governmental": 22, "Legal": 7, "Academic": 1}
    texts = {f"{domain}_{n}": f"{n} {LONG}" for domain, many in counts.items() for n in range(many)}
    texts |= {"Legal_several": LONG}
    made = await build(Judge(asks), bench(**texts), totals=SenseMakingConfig().totals)
    asked = Counter(one.category for one in made.items)
    assert asked == {"Financial": 100, "Governmental": 98, "Legal": 55}
    assert "Legal_several" not in made.counts
    of_legal = [n["questions"] for name, n in made.counts.items() if name.startswith("Legal")]
    assert sorted(of_legal) == [7, 8, 8, 8, 8, 8, 8]
    whole = await build(Judge(asks), bench(Legal_several=LONG), category=None)
    assert len(whole.items) == 5


@pytest.mark.parametrize(
    "reply",
    [
        "Here are my questions: Why?",
        json.dumps({"questions": []}),
        json.dumps({"questions": [{"parts": ["only one"], "question": "Why?"}] * 5}),
    ],
)
async def test_a_reply_that_cannot_be_read_is_counted(reply: str) -> None:
    made = await build(Judge(lambda _: reply), bench(Legal=LONG))
    assert made.items == ()
    assert made.counts["Legal"] == {"passages": 1, "unread": 1, "questions": 0}
    assert made.rows[0]["reason"]
