"""The whole conversation in one prompt."""

from __future__ import annotations

import pytest

from mgl.baselines.transcript import Transcript
from mgl.errors import ContextOverflow
from mgl.llm.prompting import available_tokens
from mgl.memories.turns import show_turns
from mgl.store import Store
from tests.baselines.asking import QUESTION, TALK, answered, asking, prompts


async def test_every_turn_is_read_and_cited(store: Store) -> None:
    mine, engine = asking(store, answered)
    answer = await Transcript(mine, TALK).answer(QUESTION)
    assert answer.text == "Carl"
    assert [citation.node_id for citation in answer.citations] == ["D3:1"]
    assert answer.retrieved == tuple(turn.id for turn in TALK.turns)
    (prompt,) = prompts(engine)
    assert all(line in prompt for _, line in show_turns(TALK.turns, range(len(TALK.turns))))
    assert store.memories()[0].kind == "transcript"


@pytest.mark.parametrize("spare", [0, -1])
async def test_it_fits_to_the_token(store: Store, spare: int) -> None:
    mine, engine = asking(store, answered, 0)
    lines = [line for _, line in show_turns(TALK.turns, range(len(TALK.turns)))]
    needed = sum(await mine.llm.count_tokens(lines))
    room = available_tokens(mine.llm, len(lines), reserve=120)
    engine.context_tokens = needed - room + spare
    method = Transcript(mine, TALK)
    if spare >= 0:
        assert (await method.answer(QUESTION)).text == "Carl"
    else:
        with pytest.raises(ContextOverflow):
            await method.answer(QUESTION)
        assert engine.requests == []
        assert store.memories() == []
