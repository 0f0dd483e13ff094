"""RLM: a model reads a long text through the Python that it writes, and asks a model about parts.

Source: Zhang et al. 2025 (arXiv 2512.24601), §2, with the numbers of its released code (the form
that ends by FINAL). The text is the variable ``context`` of a Python session. In up to 30 turns the
model writes blocks of code, sees the first 20,000 characters that each prints, and calls
``llm_query`` in it, which asks the same model about a text that the code makes. It ends with
FINAL(answer) or FINAL_VAR(variable); after the last turn it is asked for an answer once more.
MindGraph's tables give it 30 turns as well. The prompts are ours. Nothing is read beforehand.

The code runs in a sandbox (``mgl.baselines.sandbox``), and not, as there, with the user's rights;
where the system has none, ``unsafe`` runs it without. Unlike the released code:

- what it ends with is read by the call that answers for every baseline;
- a prompt that does not fit, or a call that fails, comes back to the code as a text;
- a history that outgrows the context ends the turns;
- ``python`` marks a block as ``repl`` does; FINAL counts outside of blocks, or called in them;
- the model is told how much a call takes here; calls go one after the other, 500 at most;
- ``rlm_query``, at the paper's depth of 1 the same as ``llm_query``, is left out.

The compaction ratio is of what the code printed. ``retrieved`` are the turns or passages that it
printed word for word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt
from mgl.baselines.sandbox import MEMORY_BYTES, MODULES, OUTPUT_CHARS, Sandbox
from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.llm.base import Message, Sampling
from mgl.llm.prompting import PROMPT_TOKENS, fit_texts
from mgl.memories.base import Tools
from mgl.memories.propose import FAILURES
from mgl.prompt import Prompt
from mgl.types import Answer, Conversation, Question, Span

ROOT_TOKENS: Final = 2048
SUB_TOKENS: Final = 1024
SUB_CALLS: Final = 500
TOKEN_CHARS: Final = 3
LEAST_CHARS: Final = 16  # of a printed line that is looked up in the text
LOOK: Final = "You have not looked at the text yet, so do not answer now.\n\n"

SYSTEM = Prompt(
    "rlm.system",
    source="ours, in the role of Zhang et al. 2025, §2",
    text="""You answer a question about a text that may be too long to be read at once. The text \
is the string `context` in a Python session. You see of it only what your code prints. Write code \
in blocks like this one:

```repl
print(len(context), context[:1000])
```

All blocks run in one session, whose variables last. You are shown the first {output} characters \
that a block prints. There are no files and no network, and these modules alone can be imported: \
{modules}.

llm_query(prompt) asks a language model, which sees nothing but the prompt, and returns its reply \
as a string. The prompt may have about {chars} characters. llm_query_batched(prompts) does so for \
each prompt of a list, and returns the list of replies. SHOW_VARS() returns the names of your \
variables.

First look how the text is built. Then find the parts that matter: search for words, or cut the \
text into pieces and ask about each of them by llm_query. Keep what you learn in variables, and \
print it.

When you know the answer, write on a line of its own, outside of any block, FINAL(your answer), or \
FINAL_VAR(name) if a variable holds the answer. Never write either before you have seen what your \
code printed.""",
    variables=("output", "modules", "chars"),
)

TEXT = Prompt(
    "rlm.text",
    source="ours, in the role of Zhang et al. 2025, §2",
    text="`context` is a str, {kind}. It has {chars} characters in {lines} lines.",
    variables=("kind", "chars", "lines"),
)

TURN = Prompt(
    "rlm.turn",
    source="ours, in the role of Zhang et al. 2025, §2",
    text="""{look}Question: {question}

Think about what to do next, and write the next block of code. If you know the answer, end.""",
    variables=("look", "question"),
)

RAN = Prompt(
    "rlm.ran",
    source="ours, in the role of Zhang et al. 2025, §2",
    text="""This code ran:
```repl
{code}
```

It printed:
{output}

Variables: {names}""",
    variables=("code", "output", "names"),
)

LAST = Prompt(
    "rlm.last",
    source="ours, in the role of Zhang et al. 2025, §2",
    text="""Question: {question}

No more code can be run. Answer the question from what was printed. Write the answer alone.""",
    variables=("question",),
)

_BLOCK: Final = re.compile(r"^[ \t]*```(?:repl|python)[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.M | re.S)
_FINAL: Final = re.compile(r"^[ \t]*FINAL\((.*)\)[ \t]*$", re.M | re.S)
_FINAL_VAR: Final = re.compile(r"^[ \t]*FINAL_VAR\((.*?)\)", re.M)


class RlmConfig(BaselineConfig):
    """``turns`` of code are written at most. ``unsafe`` runs the code with the user's own rights:
    it can read and delete files."""

    turns: int = Field(30, ge=1)
    unsafe: bool = False


class Rlm(Baseline[None]):
    """Reads the source by the code that a model writes for each question."""

    kind = "rlm"
    reads = "either"
    Config = RlmConfig
    _config: RlmConfig

    async def _respond(self, question: Question) -> Answer:
        """UsageError where code cannot be confined on this system, and is not to run ``unsafe``."""
        tokens = await self.source_tokens()
        text = self._text()
        if not text.strip():
            return await self._answer(question, [])
        is_talk = isinstance(self._source, Conversation)
        session = _Session(self._tools, question, text, is_talk=is_talk)
        unsafe = self._config.unsafe
        async with Sandbox(text, session.ask, unsafe=unsafe) as sandbox:
            if sandbox.unfiltered is not None:
                self._tools.observer.note(
                    "the code that the model writes can take more of this system's memory than "
                    f"{MEMORY_BYTES >> 20:,} MiB: system calls are not filtered "
                    f"({sandbox.unfiltered})"
                )
            final = await session.explore(sandbox, self._config.turns)
        llm, outputs = self._tools.llm, session.outputs
        if not final:
            final = await session.conclude()
        (kept,) = await fit_texts(llm, [final], reserve=await self._reserve(question))
        answer = await self._answer(
            question,
            [Excerpt(kept)],
            read=self._find_printed(outputs),
            trace=session.trace,
            marks=tuple(session.marks),
        )
        seen = sum(await llm.count_tokens(outputs)) if outputs else 0
        return replace(answer, compaction_ratio=seen / tokens if tokens else None)

    def _text(self) -> str:
        """What the code reads: of a conversation its turns, a line each."""
        if not isinstance(self._source, Conversation):
            return self._source.text
        spoken = [n for n, turn in enumerate(self._source.turns) if turn.text]
        return "\n".join(excerpt.text for excerpt in self._turns(spoken))

    def _find_printed(self, outputs: Sequence[str]) -> list[Span]:
        """Where the source stands that was printed word for word."""
        source, printed = self._source, "\n".join(outputs)
        if isinstance(source, Conversation):
            turns = self._turns(range(len(source.turns)))
            return [each.span for each in turns if each.span is not None and each.text in printed]
        lines = {line.strip() for line in printed.splitlines()}
        places = {line: source.text.find(line) for line in lines if len(line) >= LEAST_CHARS}
        found: list[Span] = []
        for start, line in sorted((at, line) for line, at in places.items() if at >= 0):
            end = start + len(line)
            if found and not source.text[found[-1].end : start].strip():
                last = found.pop()
                start, end = last.start, max(end, last.end)
            found.append(source.span(start, end))
        return found


class _Session:
    """The history of one question: what the model wrote, and what its code printed."""

    def __init__(self, tools: Tools, question: Question, text: str, *, is_talk: bool) -> None:
        self._llm = tools.llm
        self._observer = tools.observer
        self._question = question.text
        self._calls = 0
        self.outputs: list[str] = []
        self.trace: list[str] = []
        self.marks: list[str] = []
        room = self._llm.context_tokens - SUB_TOKENS - PROMPT_TOKENS
        rules = SYSTEM.render(
            output=f"{OUTPUT_CHARS:,}",
            modules=", ".join(name for name in MODULES if not name.startswith("_")),
            chars=f"{max(0, room) * TOKEN_CHARS:,}",
        )
        about = TEXT.render(
            kind="a conversation, each turn a line" if is_talk else "a document",
            chars=f"{len(text):,}",
            lines=f"{len(text.splitlines()):,}",
        )
        self._history = [Message("system", rules), Message("user", about)]

    async def ask(self, prompt: str) -> str:
        """Answer ``llm_query``; what goes wrong comes back as a text."""
        self._calls += 1
        if self._calls > SUB_CALLS:
            return f"Error: {SUB_CALLS} calls were made, and no more can be"
        sampling = Sampling(max_tokens=SUB_TOKENS)
        try:
            reply = await self._llm.complete(
                [Message("user", prompt)], sampling=sampling, stage="rlm.sub"
            )
        except FAILURES as error:
            return f"Error: {error.message}"
        return reply.text

    async def explore(self, sandbox: Sandbox, turns: int) -> str | None:
        """Run what the model writes until it ends; None where it did not."""
        for turn in range(turns):
            prompt = TURN.render(look="" if turn else LOOK, question=self._question)
            said = await self._say([*self._history, Message("user", prompt)])
            if said is None:
                return None
            self._history.append(Message("assistant", said))
            calls, codes = self._calls, [match[1].rstrip() for match in _BLOCK.finditer(said)]
            final = None
            for code in codes:
                final = await self._run(sandbox, code) or final
            made = self._calls - calls
            self.trace.append(f"turn {turn + 1}: {len(codes)} blocks, {made} calls")
            self._observer.progress("turns", turn + 1, turns)
            outside = _BLOCK.sub("", said)
            if final is None and (named := _FINAL_VAR.search(outside)):
                final = await self._run(sandbox, f"FINAL_VAR({named[1].strip()!r})")
            elif final is None and (given := _FINAL.search(outside)):
                final = given[1].strip()
            if final is not None:
                return final
        return None

    async def conclude(self) -> str:
        """Ask for an answer from the history, cut to the context; ReplyInvalid for none."""
        self.marks.append("answer_forced")
        history = [*self._history, Message("user", LAST.render(question=self._question))]
        texts = [message.content for message in history]
        kept = await fit_texts(self._llm, texts, reserve=2 * ROOT_TOKENS)
        if kept != texts:
            self.marks.append("text_truncated")
        cut = [replace(each, content=text) for each, text in zip(history, kept, strict=True)]
        said = await self._say(cut)
        if said is None:
            raise ReplyInvalid(
                f"the model gave no answer: {self.trace[-1]}", hint="use another model"
            )
        given = _FINAL.search(said)
        return given[1].strip() if given else said

    async def _run(self, sandbox: Sandbox, code: str) -> str | None:
        """Run code and show what it printed; what it ended with, if it did."""
        ran = await sandbox.run(code)
        self.outputs.append(ran.output)
        more = f"\n({ran.more:,} more characters)" if ran.more else ""
        shown = (ran.output.rstrip("\n") or "(nothing)") + more
        names = ", ".join(ran.names) or "none"
        message = RAN.render(code=code, output=shown, names=names)
        self._history.append(Message("user", message))
        return ran.final

    async def _say(self, messages: Sequence[Message]) -> str | None:
        """Ask for a reply; if none can be used, trace the error and return None."""
        sampling = Sampling(max_tokens=ROOT_TOKENS)
        try:
            reply = await self._llm.complete(_join(messages), sampling=sampling, stage="rlm.root")
        except (ReplyInvalid, ContextOverflow) as error:
            self.trace.append(error.message)
            return None
        return reply.text


def _join(messages: Sequence[Message]) -> list[Message]:
    """Join consecutive messages of the same role, as chat templates require."""
    joined = []
    for _, group in groupby(messages, key=lambda message: message.role):
        first, *rest = group
        texts = [message.content for message in (first, *rest)]
        joined.append(replace(first, content="\n\n".join(texts)))
    return joined
