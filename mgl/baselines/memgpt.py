"""MemGPT: a core memory that is always in sight, and functions that search all that was said.

Source: Packer et al. 2023 (arXiv 2310.08560), §2, with the numbers of its released code. Core
memory is two blocks of 2,000 characters, recall storage all messages, archival storage passages
that are searched by their vectors. For a question the model calls functions. A call may request a
heartbeat, that is, another turn; results come five a page. The prompts are ours.

Neither A-Mem nor GAM, whose tables have its rows, says how a conversation was given to it. This is
our reading:

- Messages are put in recall and archival storage as they are, a message a passage, without a call.
- Core memory is edited a session at a time, in one call. Its blocks are about the first speaker and
  about the others, since a conversation that is read has no persona and no user.
- A question begins with an empty queue of messages and sees core memory. At most ten functions are
  called, and none writes. The queue holds their results and is cut to fit.
- A call is {thoughts, function, arguments, heartbeat} under a schema. ``send_message``, or a
  function without a heartbeat, ends the search; core memory and all messages that were found are
  then answered from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt
from mgl.llm.constraints import max_chars, several
from mgl.llm.prompting import fit_texts
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import StrictReply
from mgl.memories.table import Table
from mgl.memories.turns import ask_lines
from mgl.prompt import Prompt
from mgl.retrieval.ranking import nearest
from mgl.text.groups import format_turn
from mgl.types import Answer, Question, Span

BLOCK_CHARS: Final = 2000
PAGE: Final = 5
MOST_FUNCTIONS: Final = 10
MOST_EDITS: Final = 5
EDIT_TOKENS: Final = 1000
STEP_TOKENS: Final = 256
EMPTY: Final = "(empty)"

UPDATE = Prompt(
    "memgpt.update",
    source="ours, in the role of Packer et al. 2023, §2.1",
    text="""You keep a core memory of two blocks, about the speakers of a conversation. A block \
has at most 2,000 characters.

{core}

The next session of the conversation:

{session}

Keep what will matter in later talks: who they are, what they like, plan and have lived through. \
Replace what no longer holds, or what can be said more briefly, by giving the old text as it \
stands in its block. Append what is new. Leave both lists empty if there is nothing to keep.

{"replace": [{"block": "first", "old": "...", "new": "..."}], \
"append": [{"block": "others", "text": "..."}]}""",
    variables=("core", "session"),
)

STEP = Prompt(
    "memgpt.step",
    source="ours, in the role of Packer et al. 2023, §2.3 and §2.4",
    text="""You have a core memory, and functions that search {count} messages of a conversation.

{core}

Functions, each with a query and the number of a page of five results:
conversation_search: messages that hold the query word for word
conversation_search_date: messages from one day to another; the query is "2023-05-08 2023-05-12"
archival_memory_search: messages whose meaning is like the query
send_message: ends the search, so that the question is answered from what was found

Functions called so far, with their results:

{results}

{question}

Call the function that helps most to answer the question. Ask for a heartbeat if another function \
is to be called after it.

{"thoughts": "...", "function": "...", "arguments": {"query": "...", "page": 1}, \
"heartbeat": true}""",
    variables=("count", "core", "results", "question"),
)

Block = Literal["first", "others"]
BLOCKS: Final[tuple[Block, ...]] = ("first", "others")
Text = Annotated[str, max_chars(400)]


class Replacement(StrictReply):
    block: Block
    old: Text
    new: Text


class Addition(StrictReply):
    block: Block
    text: Text


class CoreUpdate(StrictReply):
    replace: several(Replacement, MOST_EDITS)  # type: ignore[valid-type]
    append: several(Addition, MOST_EDITS)  # type: ignore[valid-type]


class SearchArguments(StrictReply):
    query: Annotated[str, max_chars(120)]
    page: Annotated[int, Field(ge=1)]


class Step(StrictReply):
    thoughts: Annotated[str, max_chars(240)]
    function: Literal[
        "conversation_search",
        "conversation_search_date",
        "archival_memory_search",
        "send_message",
    ]
    arguments: SearchArguments
    heartbeat: bool


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """Some text of a block in place of other text."""

    span: Span
    block: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AppendText:
    """A line at the end of a block."""

    span: Span
    block: str
    text: str


@dataclass(frozen=True, slots=True)
class CoreMemory:
    """The texts of the blocks by their names."""

    blocks: Table[str, str]


def apply(core: CoreMemory, edit: ReplaceText | AppendText) -> CoreMemory:
    """Edit a block; ValueError says why not."""
    block = core.blocks[edit.block]
    if isinstance(edit, AppendText):
        edited = f"{block}\n{edit.text}".strip()
    elif edit.old in block:
        edited = block.replace(edit.old, edit.new)
    else:
        raise ValueError("the block does not hold the text to be replaced")
    if len(edited) > BLOCK_CHARS:
        raise ValueError(f"the block would have {len(edited)} characters")
    return CoreMemory(core.blocks.put(edit.block, edited))


EMPTY_CORE: Final = CoreMemory(Table(dict.fromkeys(BLOCKS, "")))


class MemGPT(Baseline[CoreMemory]):
    """Keeps a core memory of the speakers, and searches all messages by functions."""

    kind = "memgpt"
    reads = "conversation"
    retrieves = True
    vocabulary = Vocabulary(
        {"replace": ReplaceText, "append": AppendText}, apply, EMPTY_CORE, columns=("span",)
    )
    Config = BaselineConfig
    _config: BaselineConfig

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (UPDATE,)

    async def _count_steps(self) -> int:
        return len(self._sessions())

    async def _read(self) -> None:
        spans = [self._span_of(session) for session in self._sessions()]

        async def update(draft: Draft[Any, CoreMemory], step: int) -> None:
            with self._note_shown(spans[: step + 1]):
                await self._update(draft, spans[step])

        await self._go_on("sessions", len(spans), update)

    async def _update(self, draft: Draft[Any, CoreMemory], span: Span) -> None:
        """Let the model edit core memory after a session."""
        llm = self._tools.llm
        texts = [self._show_core(draft.state.blocks), self._quote(span)]
        about, session = await fit_texts(llm, texts, reserve=2 * EDIT_TOKENS)
        prompt = UPDATE.render(core=about, session=session)
        said = await self._propose(prompt, CoreUpdate, EDIT_TOKENS, "core")
        if said.reply is None:
            draft.reject("update", {}, said.problem, span=span)
            return
        for each in said.reply.replace:
            edit = ReplaceText(span, each.block, each.old, each.new)
            draft.put(edit, call_key=said.call_key)
        for added in said.reply.append:
            draft.put(AppendText(span, added.block, added.text), call_key=said.call_key)

    def _name_block(self, name: str) -> str:
        names = list(dict.fromkeys(turn.speaker for turn in self._all_turns))
        first, *others = names or ["the speaker"]
        other = others[0] if len(others) == 1 else "the others"
        return f"about {first if name == 'first' else other}"

    def _show_core(self, core: Mapping[str, str]) -> str:
        return "\n\n".join(
            f"{name}, {self._name_block(name)} ({len(core[name])} characters):\n"
            f"{core[name] or EMPTY}"
            for name in BLOCKS
        )

    async def _respond(self, question: Question) -> Answer:
        """Marked ``sessions_missing`` where core memory could not be edited after a session, and
        ``search_failed`` where the search ended with a reply that could not be used."""
        core = self.state.blocks
        found, trace, search_failed = await self._find(question, core)
        marks = self._mark_failed({"update": "sessions_missing"})
        marks += ["search_failed"] if search_failed else []
        about = [
            Excerpt(f"{self._name_block(name)}: {text}") for name, text in core.items() if text
        ]
        read = [self.conversation.line_span(at) for at in found]
        excerpts = [*about, *self._turns(sorted(found))]
        return await self._answer(question, excerpts, read=read, trace=trace, marks=marks)

    async def _find(
        self, question: Question, core: Mapping[str, str]
    ) -> tuple[list[int], list[str], bool]:
        """Call functions: the numbers of the turns they found, in the order in which they were
        found; a line a function; and whether a reply could not be used."""
        llm, spoken = self._tools.llm, [at for session in self._sessions() for at in session]
        found: dict[int, None] = {}
        results, trace = list[str](), list[str]()
        for _ in range(MOST_FUNCTIONS):
            texts = [self._show_core(core), *results]
            about, *shown = await fit_texts(llm, texts, reserve=2 * STEP_TOKENS)
            prompt = STEP.render(
                count=str(len(spoken)),
                core=about,
                results="\n\n".join(shown) or "(none)",
                question=ask_lines(question)["question"],
            )
            said = await self._propose(prompt, Step, STEP_TOKENS, "step")
            if (step := said.reply) is None:
                return list(found), trace, True
            if step.function == "send_message":
                trace.append(step.function)
                break
            query, page = step.arguments.query, step.arguments.page
            places = await self._search(step.function, query, spoken)
            here = places[PAGE * (page - 1) : PAGE * page]
            found.update(dict.fromkeys(here))
            called = f'{step.function}("{query}", page {page} of {ceil(len(places) / PAGE)})'
            trace.append(f"{called}: {len(here)} messages")
            lines = [f"- {format_turn(self.conversation.turns[at])}" for at in here]
            results.append("\n".join([f"{called}:", *(lines or ["no results"])]))
            if not step.heartbeat:
                break
        return list(found), trace, False

    async def _search(self, function: str, query: str, spoken: Sequence[int]) -> list[int]:
        """The turns that a function finds, by their numbers: in the order of the conversation, of
        archival storage the likest first."""
        turns = self.conversation.turns
        if function == "conversation_search":
            return [at for at in spoken if query.casefold() in turns[at].text.casefold()]
        if function == "conversation_search_date":
            days = sorted(re.findall(r"\d{4}-\d{2}-\d{2}", query))
            dated = [(at, turns[at].time) for at in spoken] if days else []
            return [at for at, time in dated if time and days[0] <= f"{time:%Y-%m-%d}" <= days[-1]]
        texts = {at: turns[at].line for at in spoken}
        ranked = await nearest(self._tools.required_embedder, query, texts, len(texts))
        return [at for at, _ in ranked]
