"""A summary that is rewritten."""

from __future__ import annotations

from mgl.baselines.sliding_summary import NOTHING, SlidingSummary, SlidingSummaryConfig
from mgl.store import Store
from mgl.text import chunk_document
from tests.baselines.asking import BOOK, QUESTION, answered, asking, prompts, said, silent

SMALL = SlidingSummaryConfig(chunk_tokens=200, summary_tokens=40)


def before(prompt: str) -> str:
    """The summary that a call rewrites; "" where it is no such call."""
    return prompt.partition("so far:\n")[2].partition("\n\nThe next part")[0]


def writing(prompt: str) -> str:
    """Each summary is the one before and one more."""
    if not (known := before(prompt)):
        return answered(prompt)
    return said(notes="summary" if known == NOTHING else f"{known}+")


async def test_the_summary_is_rewritten_for_each_chunk_and_then_read(store: Store) -> None:
    mine, engine = asking(store, writing)
    method = SlidingSummary(mine, BOOK, (), SMALL)
    await method.build()
    chunks = await chunk_document(BOOK, 200, mine.llm.count_tokens)
    assert len(chunks) > 2
    for number, (prompt, chunk) in enumerate(zip(prompts(engine), chunks, strict=True)):
        assert chunk.text.strip() in prompt
        assert before(prompt) == (f"summary{'+' * (number - 1)}" if number else NOTHING)
    rows = store.edits(method.id)
    assert [row.span for row in rows] == [chunk.span for chunk in chunks]
    answer = await method.answer(QUESTION)
    last = f"summary{'+' * (len(chunks) - 1)}"
    assert rows[-1].payload == {"text": last}
    assert prompts(engine)[-1].startswith(f"[1] {last}\n\nAnswer the question")
    assert (answer.text, answer.citations, answer.marks) == ("Carl.", (), ())
    assert answer.compaction_ratio is not None


async def test_a_chunk_that_gives_none_leaves_the_summary(store: Store) -> None:
    mine, engine = asking(store, silent(writing, "In part 5 "))
    answer = await SlidingSummary(mine, BOOK, (), SMALL).answer(QUESTION)
    chunks = await chunk_document(BOOK, 200, mine.llm.count_tokens)
    lost = sum("In part 5 " in chunk.text for chunk in chunks)
    assert prompts(engine)[-1].startswith(f"[1] summary{'+' * (len(chunks) - 1 - lost)}\n")
    assert answer.marks == ("chunks_unread",)
    assert len(answer.trace) == lost
