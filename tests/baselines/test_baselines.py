from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mgl.baselines.direct import Direct
from mgl.baselines.passages import Passages, PassagesConfig
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.calls import LONG_PASSAGE_ANSWER, PASSAGE_ANSWER
from mgl.observer import SilentObserver
from mgl.prompt import Prompt
from mgl.store import Store
from mgl.types import AnswerForm, Document, Question

TEXT = "".join(f"Sentence number {n} tells of nothing. " for n in range(400))
DOCUMENT = Document.from_text("t", f"The first ring is gold. {TEXT}The last ring is green.")
QUESTION = Question("What colour is the last ring?")


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(["Green."], context_tokens=1200)


@pytest.fixture
def tools(tmp_path: Path, engine: ScriptedEngine) -> Iterator[Tools]:
    with Store.open(tmp_path / "mgl.sqlite") as store:
        yield Tools(Client(engine, store.call_log()), store, SilentObserver())


async def test_direct_keeps_both_ends_of_a_text_that_does_not_fit(
    tools: Tools, engine: ScriptedEngine
) -> None:
    answer = await Direct(tools, DOCUMENT, [QUESTION]).answer(QUESTION)
    prompt = engine.requests[0].messages[-1].content
    assert answer.marks == ("text_truncated",)
    assert {citation.quote for citation in answer.citations} >= {"The last ring is green."}
    assert "first ring is gold" in prompt
    assert "last ring is green" in prompt
    first, last = (part.split("-") for part in answer.retrieved)
    assert (first[0], last[1]) == ("0", str(len(DOCUMENT.text)))
    assert int(first[1]) == int(last[1]) - int(last[0]) < int(last[0])
    assert len(prompt) < len(DOCUMENT.text)


async def test_direct_reads_a_text_that_fits_whole(tools: Tools, engine: ScriptedEngine) -> None:
    short = Document.from_text("s", TEXT[:600])
    answer = await Direct(tools, short, [QUESTION]).answer(QUESTION)
    assert answer.marks == ()
    assert answer.retrieved == ("0-600",)
    assert " ".join(short.text.split()) in engine.requests[0].messages[-1].content


async def test_passages_reads_the_best_in_text_order(tools: Tools, engine: ScriptedEngine) -> None:
    config = PassagesConfig(tokens=40, k=2)
    answer = await Passages(tools, DOCUMENT, [QUESTION], config).answer(QUESTION)
    prompt = engine.requests[0].messages[-1].content
    assert prompt.index("first ring is gold") < prompt.index("last ring is green")
    assert "Sentence number 200 " not in prompt
    assert answer.text == "Green."
    assert "green" in answer.citations[0].quote
    best, second = (slice(*map(int, place.split("-"))) for place in answer.retrieved)
    assert "last ring is green" in DOCUMENT.text[best]
    assert "first ring is gold" in DOCUMENT.text[second]
    assert answer.compaction_ratio is not None
    assert answer.compaction_ratio < 0.1


def speaking(words: int) -> ScriptedEngine:
    """A model that needs so many tokens for what it says."""

    def say(request: Request) -> Completion:
        said = min(words, request.sampling.max_tokens)
        text = " ".join(["word"] * said)
        return Completion(text, "stop" if said == words else "length", TokenUsage(9, said))

    return ScriptedEngine([say] * 3)


@pytest.mark.parametrize(("form", "words"), [("short", 150), ("long", 900)])
async def test_an_answer_has_room_for_all_that_is_listed(
    tools: Tools, form: AnswerForm, words: int
) -> None:
    engine = speaking(words)
    mine = replace(tools, llm=Client(engine, tools.store.call_log()))
    short = Document.from_text("s", TEXT[:600])
    answer = await Direct(mine, short).answer(replace(QUESTION, form=form))
    assert len(answer.text.split()) == words
    assert len(engine.requests) == 1


@pytest.mark.parametrize(
    ("form", "prompt"), [("short", PASSAGE_ANSWER), ("long", LONG_PASSAGE_ANSWER)]
)
async def test_the_form_of_an_answer_is_asked_for(
    tools: Tools, engine: ScriptedEngine, form: AnswerForm, prompt: Prompt
) -> None:
    engine.context_tokens = 4000
    await Passages(tools, DOCUMENT).answer(replace(QUESTION, form=form))
    asked = engine.requests[0].messages[-1].content
    assert asked.endswith(prompt.render(passages="", question=QUESTION.text))
