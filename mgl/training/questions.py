"""Questions that a language model writes about a memory's own text, to train its retriever on.

    pairs = await ask_about(llm, conversation, 500, SILENT)

Nobody labels anything: a question is kept if the words of it find its own text again among the
first ``FOUND`` (round-trip filtering: Alberti et al., 2019; Dai et al., Promptagator, 2022), and
the texts that they find beside it are its hard negatives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict

from mgl.llm.base import LLM, Sampling
from mgl.llm.calls import note_shown
from mgl.llm.constraints import max_chars
from mgl.memories.propose import propose
from mgl.observer import Observer
from mgl.prompt import Prompt
from mgl.retrieval.lexical import LexicalIndex
from mgl.text.chunks import Counter, window_document
from mgl.training.data import MOST_NEGATIVES, WRITTEN, Pair
from mgl.types import Document, Source

FOUND: Final = 5
"""A question is kept if its text is among so many that its words find."""

FEWEST_WORDS: Final = 8
"""Shorter turns ("Thanks, you too!") answer no question."""

WINDOW_TOKENS: Final = 100

OF_A_MESSAGE: Final = Prompt(
    "training.question_of_message",
    source="ours",  # without an example: the 1.5B copied one in 179 of 200 replies
    text=(
        "{before}\n\nThe last message:\n{text}\n\n"
        "Write one short question that is answered by the last message alone. Name its speaker and "
        "what it is about, so that somebody who has not read it knows what is asked. Never write "
        '"I", "you", "he" or "she", and do not say what the answer is.'
    ),
    variables=("before", "text"),
)

OF_A_PASSAGE: Final = Prompt(
    "training.question_of_passage",
    source="ours",
    text=(
        "{text}\n\n"
        "Write one short question that is answered by this passage alone. Call people and things "
        "by their names, so that somebody who has not read it knows what is asked, and do not say "
        "what the answer is."
    ),
    variables=("text",),
)


class WrittenQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, max_chars(160)]


@dataclass(frozen=True, slots=True)
class SourceText:
    """A turn's line, or a passage; ``before`` are the two lines before a turn.

    ``turns`` are the numbers of those turns, which a question about it is made of.
    """

    text: str
    before: str = ""
    turns: tuple[int, ...] = ()
    is_asked: bool = True


async def ask_about(llm: LLM, source: Source, limit: int | None, observer: Observer) -> list[Pair]:
    """Write questions about ``limit`` texts of a source at most, evenly spread, and keep those
    that find their text."""
    texts = await list_texts(source, llm.count_tokens)
    asked = [text for text in texts if text.is_asked]
    if limit is not None and limit < len(asked):
        asked = [asked[place * len(asked) // limit] for place in range(limit)]
    pairs = await write_questions(llm, asked, source.id, observer)
    kept = keep_found(pairs, texts)
    observer.note(f"{len(asked):,} texts asked about, {len(kept):,} questions kept")
    return kept


async def list_texts(source: Source, count: Counter) -> list[SourceText]:
    """List the turns of a conversation, or windows of a document, with ``count`` for its tokens."""
    if isinstance(source, Document):
        return [
            SourceText(each.text) for each in await window_document(source, WINDOW_TOKENS, 0, count)
        ]
    lines = [turn.line for turn in source.turns]
    return [
        SourceText(
            line,
            "\n".join(lines[max(0, place - 2) : place]),
            tuple(range(max(0, place - 2), place + 1)),
            len(turn.text.split()) >= FEWEST_WORDS,
        )
        for place, (turn, line) in enumerate(zip(source.turns, lines, strict=True))
    ]


async def write_questions(
    llm: LLM, asked: Sequence[SourceText], source: str, observer: Observer
) -> list[Pair]:
    """Ask for a question about each of some texts of a source.

    Replies that cannot be used give none. Raises what ``LLM.complete`` does.
    """
    done = 0

    async def write(text: SourceText) -> Pair | None:
        nonlocal done
        prompt, given = OF_A_PASSAGE, {"text": text.text}
        if text.turns:
            prompt, given["before"] = OF_A_MESSAGE, text.before or "(nothing was said before)"
        with note_shown(source, text.turns or None):
            proposal = await propose(
                llm,
                prompt.render(**given),
                WrittenQuestion,
                sampling=Sampling(max_tokens=64),
                stage="question",
            )
        done += 1
        observer.progress("questions", done, len(asked))
        if proposal.reply is None:
            return None
        return Pair(proposal.reply.question, text.text, (), source, WRITTEN, "the user's")

    written = await asyncio.gather(*map(write, asked))
    return [pair for pair in written if pair is not None]


def keep_found(pairs: Sequence[Pair], texts: Sequence[SourceText]) -> list[Pair]:
    """Keep the questions whose words find their text, each with what they find beside it."""
    known = list(dict.fromkeys(text.text for text in texts))
    index = LexicalIndex.of(known)
    kept = []
    for pair in pairs:
        found = [known[hit.id] for hit in index.search(pair.question, 1 + MOST_NEGATIVES)]
        if pair.positive in found[:FOUND]:
            others = tuple(text for text in found if text != pair.positive)
            kept.append(replace(pair, negatives=others[:MOST_NEGATIVES]))
    return kept
