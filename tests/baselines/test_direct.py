"""Without a memory: the whole source in one prompt, or its best passages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mgl.baselines.direct import Direct
from mgl.baselines.passages import Passages, PassagesConfig
from mgl.baselines.transcript import Transcript
from mgl.errors import ContextOverflow
from mgl.llm.base import Completion, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.prompting import available_tokens, keep_both_ends
from mgl.memories.calls import LONG_PASSAGE_ANSWER, PASSAGE_ANSWER
from mgl.memories.turns import show_turns
from mgl.prompt import Prompt
from mgl.store import Store
from mgl.types import AnswerForm, Conversation, Document, Question, Turn
from tests.baselines.asking import BOOK, QUESTION, TALK, answered, asking, prompts

TEXT = "".join(f"Sentence number {n} tells of nothing. " for n in range(400))
RINGS = Document.from_text("t", f"The first ring is gold. {TEXT}The last ring is green.")
COLOUR = Question("What colour is the last ring?")


async def test_a_document_is_read_whole_or_loses_its_middle(store: Store) -> None:
    mine, engine = asking(store, lambda _: "Green.", 1200)
    cut = await Direct(mine, RINGS).answer(COLOUR)
    assert cut.marks == ("text_truncated",)
    assert {citation.quote for citation in cut.citations} >= {"The last ring is green."}
    first, last = (part.split("-") for part in cut.retrieved)
    assert (first[0], last[1]) == ("0", str(len(RINGS.text)))
    assert int(first[1]) == int(last[1]) - int(last[0]) < int(last[0])
    whole = await Direct(mine, Document.from_text("s", TEXT[:600])).answer(COLOUR)
    assert (whole.marks, whole.retrieved) == ((), ("0-600",))
    assert " ".join(TEXT[:600].split()) in prompts(engine)[-1]


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


async def test_all_turns_are_read_and_cited(store: Store) -> None:
    mine, engine = asking(store, answered)
    for method in (Direct(mine, TALK), Transcript(mine, TALK)):
        answer = await method.answer(QUESTION)
        assert answer.text == "Carl"
        assert [citation.node_id for citation in answer.citations] == ["D3:1"]
        assert answer.citations[0].quote == TALK.turns[13].text
        assert answer.retrieved == tuple(turn.id for turn in TALK.turns)
        assert answer.marks == ()
        assert answer.compaction_ratio is not None
        lines = [line for _, line in show_turns(TALK.turns, range(len(TALK.turns)))]
        assert lines[0] == "(Monday, 08 May 2023) Bo: I went to town 0 with the walker"
        assert all(line in prompts(engine)[-1] for line in lines)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.integers(0, 200), min_size=1, max_size=30), context=st.integers(830, 2500))
@example(words=[65, 79], context=823)
async def test_a_conversation_that_does_not_fit_loses_its_middle(
    store: Store, words: list[int], context: int
) -> None:
    turns = [Turn(str(n), "Ann", f"turn{n}: " + "rain " * count) for n, count in enumerate(words)]
    source = Conversation.from_turns("talk", turns)
    mine, engine = asking(store, answered, context, log=MemoryCallLog())
    answer = await Direct(mine, source).answer(QUESTION)
    (request,) = engine.requests
    prompt = request.messages[-1].content
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


@pytest.mark.parametrize("spare", [0, -1])
async def test_a_transcript_fits_to_the_token(store: Store, spare: int) -> None:
    mine, engine = asking(store, answered, 0)
    lines = [line for _, line in show_turns(TALK.turns, range(len(TALK.turns)))]
    needed = sum(await mine.llm.count_tokens(lines))
    engine.context_tokens = needed - available_tokens(mine.llm, len(lines), reserve=120) + spare
    if spare >= 0:
        assert (await Transcript(mine, TALK).answer(QUESTION)).text == "Carl"
    else:
        with pytest.raises(ContextOverflow):
            await Transcript(mine, TALK).answer(QUESTION)
        assert engine.requests == []
        assert store.memories() == []


async def test_passages_reads_the_best_in_text_order(store: Store) -> None:
    mine, engine = asking(store, lambda _: "Green.")
    answer = await Passages(mine, RINGS, (), PassagesConfig(tokens=40, k=2)).answer(COLOUR)
    (prompt,) = prompts(engine)
    assert prompt.index("first ring is gold") < prompt.index("last ring is green")
    assert "Sentence number 200 " not in prompt
    assert answer.text == "Green."
    assert "green" in answer.citations[0].quote
    best, second = (slice(*map(int, place.split("-"))) for place in answer.retrieved)
    assert "last ring is green" in RINGS.text[best]
    assert "first ring is gold" in RINGS.text[second]
    assert answer.compaction_ratio is not None
    assert answer.compaction_ratio < 0.1


@pytest.mark.parametrize(
    ("form", "prompt", "words"),
    [("short", PASSAGE_ANSWER, 150), ("long", LONG_PASSAGE_ANSWER, 900)],
)
async def test_the_form_of_an_answer_is_asked_for_and_has_room(
    store: Store, form: AnswerForm, prompt: Prompt, words: int
) -> None:
    said = Completion(" ".join(["word"] * words), "stop", TokenUsage(9, words))
    mine, engine = asking(store, lambda _: said, 4000)
    answer = await Passages(mine, RINGS).answer(replace(COLOUR, form=form))
    assert len(answer.text.split()) == words
    (request,) = engine.requests
    assert request.sampling.max_tokens >= words
    ending = prompt.render(passages="", question=COLOUR.text)
    assert request.messages[-1].content.endswith(ending)
    assert ending.endswith(COLOUR.text)  # last, so that a small model answers in its language
