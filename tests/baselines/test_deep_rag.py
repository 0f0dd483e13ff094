"""Follow-up questions, some of them retrieved for."""

from __future__ import annotations

from mgl.baselines.deep_rag import DeepRag, DeepRagConfig
from mgl.store import Store
from mgl.types import Question
from tests.baselines.asking import (
    BOOK,
    QUESTION,
    TALK,
    Model,
    answered,
    asking,
    prompts,
    said,
    silent,
)

CONFIG = DeepRagConfig(chunk_tokens=40, overlap_tokens=10, k=1)


Asked = tuple[str, str, str]


def deciding(*steps: Asked | list[Asked]) -> Model:
    left = [step if isinstance(step, list) else [step] for step in steps]

    def reply(prompt: str) -> str:
        if '"decision"' in prompt:
            names = ("decision", "follow_up", "answer")
            return said(questions=[dict(zip(names, each, strict=True)) for each in left.pop(0)])
        if "from these passages alone" in prompt:
            return said(answer="Carl did")
        return answered(prompt)

    return reply


async def test_it_retrieves_or_knows_and_answers_from_its_chain(store: Store) -> None:
    steps = [
        ("retrieve", "Who lost the ring?", "-"),
        ("know", "Is Carl a man?", "Yes."),
        ("final", "-", "-"),
    ]
    mine, engine = asking(store, deciding(*steps))
    answer = await DeepRag(mine, BOOK, (), CONFIG).answer(QUESTION)
    decide, read, again, end, last = prompts(engine)
    assert "(nothing yet)" in decide
    assert "Carl lost the ring" in read
    assert "1. Who lost the ring? Carl did" in again
    assert "2. Is Carl a man? Yes." in end
    assert "Who lost the ring? Carl did" in last
    assert "Carl lost the ring." in last
    assert answer.trace == (
        "retrieve: Who lost the ring?",
        "know: Is Carl a man?",
        "nothing is missing",
    )


async def test_a_step_asks_several_questions_over_the_chunks_that_a_step_may_read(
    store: Store,
) -> None:
    """HGMem §4.3: as many chunks a step as HGMem, however many subqueries share them."""
    asked = [("retrieve", f"Who went to town {n}?", "-") for n in (3, 5, 7)]
    mine, engine = asking(store, deciding(asked, ("final", "-", "-")))
    config = CONFIG.model_copy(update={"k": 4})
    answer = await DeepRag(mine, BOOK, (), config).answer(QUESTION)
    assert answer.trace[:3] == tuple(f"retrieve: {follow_up}" for _, follow_up, _ in asked)
    passages = [
        prompt.partition("Answer in one sentence from")[0].strip().split("\n\n")
        for prompt in prompts(engine)
        if "from these passages alone" in prompt
    ]
    assert [len(each) for each in passages] == [2, 1, 1]
    assert len(answer.retrieved) <= 4
    schema = next(r.json_schema for r in engine.requests if '"decision"' in r.messages[-1].content)
    assert (schema or {})["properties"]["questions"]["maxItems"] == 3


async def test_steps_end_and_the_first_cannot_be_the_end(store: Store) -> None:
    mine, engine = asking(store, deciding(*[("know", "Is it Carl?", "Yes.")] * 9))
    answer = await DeepRag(mine, BOOK, (), CONFIG).answer(QUESTION)
    decided = [
        request for request in engine.requests if '"decision"' in request.messages[-1].content
    ]
    assert len(decided) == len(answer.trace) == CONFIG.steps
    ways = [str(request.json_schema) for request in decided]
    assert "final" not in ways[0]
    assert "final" in ways[1]


async def test_a_conversation_is_cited_and_a_silent_model_ends_the_chain(store: Store) -> None:
    mine, _ = asking(store, silent(answered, '"decision"'))
    none = await DeepRag(mine, TALK, (), CONFIG).answer(QUESTION)
    assert none.citations == ()
    mine, _ = asking(store, deciding(("retrieve", "Who lost the ring?", "-"), ("final", "-", "-")))
    answer = await DeepRag(mine, TALK, (), CONFIG).answer(Question("Whose ring was lost?"))
    assert answer.retrieved
