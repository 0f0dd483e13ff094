"""A text that is read by code, and the turns in which it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from mgl.baselines import rlm
from mgl.baselines.rlm import Rlm, RlmConfig
from mgl.baselines.sandbox import Sandbox
from mgl.errors import EngineRejected, ReplyInvalid, UsageError
from mgl.llm.base import Completion
from mgl.store import Store
from tests.baselines.asking import (
    BOOK,
    OTHER,
    QUESTION,
    TALK,
    Model,
    answered,
    asking,
    killed,
    nothing,
    prompts,
)

CONFIG = RlmConfig(turns=4, unsafe=True)  # the code is the tests' own


def block(code: str) -> str:
    return f"I look.\n```repl\n{code}\n```\nSo far."


def writing(*replies: str, last: str = "Nobody.") -> Model:
    left = list(replies)

    def reply(prompt: str) -> str:
        if "write the next block" in prompt:
            return left.pop(0)
        if "No more code can be run" in prompt:
            return last
        return f"about {prompt.split()[-1]}" if prompt.startswith("Tell of") else answered(prompt)

    return reply


def turns(asked: Sequence[str]) -> list[str]:
    return [prompt for prompt in asked if "write the next block" in prompt]


async def test_code_reads_asks_and_ends_with_a_variable(store: Store) -> None:
    look = block("at = context.find('Carl')\nprint(context[at:])")
    ask = block("said = llm_query('Tell of ' + context[at:][:4])\nprint(said)\nFINAL_VAR('said')")
    mine, engine = asking(store, writing(look, ask))
    memory = Rlm(mine, BOOK, (), CONFIG)
    answer = await memory.answer(QUESTION)
    first, second = turns(prompts(engine))
    assert f"{len(BOOK.text):,} characters in 25 lines" in first
    assert "have not looked" in first
    assert "have not looked" not in second
    assert "It printed:\nCarl lost the ring." in second
    assert "Variables: at" in second
    assert first.count("Question:") == second.count("Question:") == 1
    assert "Tell of Carl" in prompts(engine)
    assert "about Carl" in prompts(engine)[-1]
    assert answer.trace == ("turn 1: 1 blocks, 0 calls", "turn 2: 1 blocks, 1 calls")
    at = BOOK.text.find("Carl")
    assert answer.retrieved == (BOOK.span(at, at + 19).place,)
    tokens = await mine.llm.count_tokens(["Carl lost the ring.\n", "about Carl\n"])
    assert answer.compaction_ratio == sum(tokens) / store.memory(memory.id).tokens
    assert mine.llm.usage().keys() == {"rlm.root", "rlm.sub", "answer"}
    roles = [message.role for message in engine.requests[1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    calls = len(engine.requests)
    assert await Rlm(mine, BOOK, (), CONFIG).answer(QUESTION) == answer
    assert len(engine.requests) == calls


@pytest.mark.parametrize("last", [1, 2, 3])
async def test_one_that_was_killed_goes_on_and_asks_nothing_twice(store: Store, last: int) -> None:
    ask = block("import random\nprint(llm_query(f'Tell of {random.random()}'))")
    model = writing(ask, ask, "FINAL(Carl)")
    dying, seen = killed(model, last)
    with pytest.raises(EngineRejected):
        await Rlm(asking(store, dying)[0], BOOK, (), CONFIG).answer(QUESTION)
    mine, engine = asking(store, model)
    answer = await Rlm(mine, BOOK, (), CONFIG).answer(QUESTION)
    every = [*seen, *prompts(engine)]
    assert len(every) == len(set(every)) == 6
    assert [line.split()[-2] for line in answer.trace] == ["1", "1", "0"]


@pytest.mark.parametrize(
    ("end", "final"),
    [
        ("FINAL(Carl (the\nolder))", "Carl (the\nolder)"),
        ("  FINAL_VAR(who)", "Carl"),
        ("```python\nFINAL(who)\n```", "Carl"),
        (block("print(1)") + "\nFINAL(Carl)", "Carl"),
    ],
)
async def test_ways_to_end(store: Store, end: str, final: str) -> None:
    mine, engine = asking(store, writing(block("who = 'Carl'"), end))
    await Rlm(mine, BOOK, (), CONFIG).answer(QUESTION)
    assert f"[1] {' '.join(final.split())}\n" in prompts(engine)[-1]


@pytest.mark.parametrize("reason", [None, "prctl: Invalid argument"])
async def test_a_note_says_that_system_calls_are_not_filtered(
    store: Store, monkeypatch: pytest.MonkeyPatch, reason: str | None
) -> None:
    class Unfiltered(Sandbox):
        async def __aenter__(self) -> Unfiltered:
            await super().__aenter__()
            self.unfiltered = reason
            return self

    notes: list[str] = []
    monkeypatch.setattr(rlm, "Sandbox", Unfiltered)
    mine, _ = asking(store, writing("FINAL(Carl)"))
    observer = SimpleNamespace(note=notes.append, progress=lambda *_: None)
    await Rlm(replace(mine, observer=observer), BOOK, (), CONFIG).answer(QUESTION)
    said = "more of this system's memory than 1,024 MiB"
    assert [said in note and str(reason) in note for note in notes] == ([True] if reason else [])


async def test_errors_are_shown_and_the_turns_go_on(store: Store) -> None:
    mine, engine = asking(
        store,
        writing("FINAL_VAR(who)", block("print(1 / 0)"), "I think about FINAL(it).", "FINAL(x)"),
    )
    answer = await Rlm(mine, BOOK, (), CONFIG).answer(QUESTION)
    asked = turns(prompts(engine))
    assert "there is no variable 'who'" in asked[1]
    assert "Error in line 1: ZeroDivisionError" in asked[2]
    assert len(asked) == 4
    assert answer.marks == ()


async def test_after_the_last_turn_an_answer_is_asked_for(store: Store) -> None:
    mine, engine = asking(store, writing(*[block("print('x' * 30000)")] * 4, last="FINAL(Carl)"))
    answer = await Rlm(mine, BOOK, (), CONFIG).answer(QUESTION)
    assert "(10,001 more characters)" in turns(prompts(engine))[1]
    assert answer.marks == ("answer_forced",)
    assert "[1] Carl\n" in prompts(engine)[-1]


async def test_a_history_that_does_not_fit_ends_the_turns(store: Store) -> None:
    code = "print('word ' * 3000)"
    mine, engine = asking(store, writing(*[block(code)] * 4), context=7000)
    answer = await Rlm(mine, BOOK, (), CONFIG).answer(QUESTION)
    assert len(turns(prompts(engine))) == 2
    assert answer.marks == ("answer_forced", "text_truncated")
    assert "context holds 7,000" in answer.trace[-1]


async def test_calls_that_fail_come_back_as_texts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rlm, "SUB_CALLS", 3)
    silent = writing(
        block("print(llm_query('Say nothing'))\nprint(llm_query('word ' * 40000))"),
        block("print(llm_query_batched(['Tell of Ann', 'Tell of Bo']))"),
        "FINAL(x)",
    )

    def model(prompt: str) -> str | Completion:
        return nothing(prompt) if prompt == "Say nothing" else silent(prompt)

    mine, engine = asking(store, model)
    await Rlm(mine, BOOK, (), CONFIG).answer(QUESTION)
    _, second, third = turns(prompts(engine))
    assert "Error: no valid reply in 3 attempts" in second
    assert "Error: the prompt has 4" in second
    assert "['about Ann', 'Error: 3 calls were made" in third


async def test_turns_that_were_printed_are_retrieved(store: Store) -> None:
    find = block("for line in context.splitlines():\n    if 'ring' in line: print(line)")
    mine, engine = asking(store, writing(find, "FINAL(Carl)"))
    answer = await Rlm(mine, TALK, (), CONFIG).answer(QUESTION)
    assert "a conversation, each turn a line" in prompts(engine)[0]
    assert answer.retrieved == ("D3:1",)
    every = block("print(context)")
    mine, _ = asking(store, writing(every, "FINAL(Carl)"))
    answer = await Rlm(mine, TALK, (), CONFIG).answer(OTHER)
    assert answer.retrieved == tuple(turn.id for turn in TALK.turns)


async def test_a_model_that_says_nothing(store: Store) -> None:
    mine, _ = asking(store, nothing)
    for source in (BOOK, TALK):
        with pytest.raises(ReplyInvalid, match="the model gave no answer"):
            await Rlm(mine, source, (), CONFIG).answer(QUESTION)


async def test_an_attack_is_shown_to_the_model(store: Store) -> None:
    async def reply(prompt: str) -> str:
        return prompt

    try:
        async with Sandbox("", reply):
            pass
    except UsageError as error:
        pytest.skip(error.message)
    attack = block("import os\nprint(open('/etc/passwd').read())")
    mine, engine = asking(store, writing(attack, block("os._exit(1)"), "FINAL(Carl)"))
    await Rlm(mine, BOOK).answer(QUESTION)
    _, second, third = turns(prompts(engine))
    assert "FileNotFoundError" in second
    assert "the code ended its Python" in third
