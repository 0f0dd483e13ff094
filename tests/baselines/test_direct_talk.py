"""Direct over a conversation."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mgl.baselines.direct import Direct
from mgl.llm.calls import MemoryCallLog
from mgl.llm.prompting import keep_both_ends
from mgl.store import Store
from mgl.types import Conversation, Document, Question, Turn
from tests.baselines.asking import BOOK, QUESTION, TALK, answered, asking, prompts


async def test_all_turns_are_read_and_cited(store: Store) -> None:
    mine, engine = asking(store, answered)
    answer = await Direct(mine, TALK).answer(QUESTION)
    (prompt,) = prompts(engine)
    assert all(turn.line in prompt for turn in TALK.turns)
    assert "(Monday, 08 May 2023) Bo: I went to town 0" in prompt
    assert [citation.node_id for citation in answer.citations] == ["D3:1"]
    assert answer.citations[0].quote == TALK.turns[13].text
    assert answer.marks == ()
    assert answer.compaction_ratio is not None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.integers(0, 200), min_size=1, max_size=30), context=st.integers(830, 2500))
@example(words=[65, 79], context=823)
async def test_what_does_not_fit_loses_its_middle(
    store: Store, words: list[int], context: int
) -> None:
    turns = [Turn(str(n), "Ann", f"turn{n}: " + "rain " * count) for n, count in enumerate(words)]
    source = Conversation.from_turns("talk", turns)
    mine, engine = asking(store, answered, context, log=MemoryCallLog())
    answer = await Direct(mine, source).answer(QUESTION)
    (request,) = engine.requests
    prompt = request.messages[-1].content
    assert await engine.count_prompt_tokens(request) + request.sampling.max_tokens <= context
    read = [n for n in range(len(words)) if f"turn{n}:" in prompt]
    gone = [n for n in range(len(words)) if n not in read]
    assert read[0] == 0
    assert read[-1] == len(words) - 1
    assert gone == list(range(gone[0], gone[-1] + 1)) if gone else True
    assert answer.marks == (("text_truncated",) if gone or "[…]" in prompt else ())


@pytest.mark.parametrize(("source", "context"), [(BOOK, 1200), (TALK, 800)])
async def test_questions_of_other_lengths_share_the_prefix(
    store: Store, source: Document | Conversation, context: int
) -> None:
    mine, engine = asking(store, answered, context)
    short, long = Question("Who?"), Question("Who lost the ring, and where was it when he lost it?")
    for question in (short, long):
        answer = await Direct(mine, source).answer(question)
        assert answer.marks == ("text_truncated",)
    first, second = prompts(engine)
    assert first.split(short.text)[0] == second.split(long.text)[0]


async def test_both_ends_of_a_document_have_half_the_room(store: Store) -> None:
    mine, _ = asking(store, answered)
    for most in (0, 1, 7, 50, 300):
        kept = await keep_both_ends(mine.llm, BOOK.text, most)
        (count,) = await mine.llm.count_tokens(["\n\n".join(kept)])
        assert count <= most
        assert len(kept) in (0, 2)
        assert BOOK.text.startswith(kept[0] if kept else "")
        assert BOOK.text.endswith(kept[-1] if kept else "")
    assert await keep_both_ends(mine.llm, BOOK.text, 10_000) == (BOOK.text,)
