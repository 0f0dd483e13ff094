"""The calls that memories and baselines share, one call each.

- ``answer_from_passages`` answers a question about a document from passages of it,
- ``cite_evidence`` cites the sentences of passages that tell most of an answer,
- ``answer_field`` is the field of a reply that answers, in every memory,
- ``extract_claim`` says in a sentence what a passage tells,
- ``find_support`` how surely a passage says a claim,
- ``summarize`` shortens a text within a token budget.

The prompts are ours and the same for every method, so that methods differ by what they read alone.
Passages come before the question, so that calls about one passage share an engine's prefix cache;
the numbers of what is cited come before the answer, so that it stands on something. A question in
words comes last: a small model then answers in its language, and often in English otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import StringConstraints, create_model

from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.llm.base import LLM, Sampling
from mgl.llm.constraints import max_chars, one_of
from mgl.llm.prompting import available_tokens, reader_messages, shorten
from mgl.memories.propose import StrictReply
from mgl.prompt import Prompt, one_line
from mgl.retrieval.evidence import find_evidence
from mgl.text.declining import is_declined
from mgl.types import AnswerForm, Citation, Document, Question, Span

ANSWER_TOKENS: Final[Mapping[AnswerForm, int]] = {"short": 256, "long": 1024}
MOST_CITED: Final = 2

PASSAGE_ANSWER = Prompt(
    "reading.answer",
    source="ours",
    text=(
        "{passages}\n\nAnswer the question below in one short sentence, using only the text above. "
        "Be specific.\n\nQuestion: {question}"
    ),
    variables=("passages", "question"),
)

LONG_PASSAGE_ANSWER = Prompt(
    "reading.long_answer",
    source="ours",
    text=(
        "{passages}\n\nAnswer the question below in full, using only the text above: everything "
        "that it tells about the question, from every side, with names and particulars. Write "
        "plain prose.\n\nQuestion: {question}"
    ),
    variables=("passages", "question"),
)

PASSAGE_CHOICE = Prompt(
    "reading.choice",
    source="ours",
    text=(
        "{passages}\n\nQuestion: {question}\n"
        "Answer the question, using only the text above, with one of these, as it is written: "
        '{options}.\n\n{"answer": "..."}'
    ),
    variables=("passages", "question", "options"),
)

_PROMPTS: Final[Mapping[AnswerForm, Prompt]] = {
    "short": PASSAGE_ANSWER,
    "long": LONG_PASSAGE_ANSWER,
}


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """``input_tokens`` is what the call read, instructions included."""

    text: str
    input_tokens: int
    call_key: str | None = None


def passage_prompt(question: Question) -> Prompt:
    """The prompt by which a question about a document is answered from passages."""
    return PASSAGE_CHOICE if question.options else _PROMPTS[question.form]


async def answer_from_passages(
    llm: LLM,
    passages: Sequence[str],
    question: Question,
    *,
    sampling: Sampling | None = None,
    stage: str = "answer",
) -> PassageAnswer:
    """An answer from numbered passages, one of the question's options if it has any; what
    LLM.complete raises. By default it is greedy, with the tokens of the question's form."""
    asked = {"passages": number_passages(passages), "question": _ask(question)}
    sampling = sampling or Sampling(max_tokens=ANSWER_TOKENS[question.form])
    if question.options:
        prompt = PASSAGE_CHOICE.render(**asked, options=list_options(question))
        schema = create_model("choice", __base__=_Chosen, answer=(answer_field(question, 0), ...))
        chosen = await llm.complete(reader_messages(prompt), schema, sampling=sampling, stage=stage)
        read = chosen.usage.input_tokens
        return PassageAnswer(chosen.parsed.answer, read, chosen.call_key)
    reply = await llm.complete(
        reader_messages(passage_prompt(question).render(**asked)), sampling=sampling, stage=stage
    )
    return PassageAnswer(one_line(reply.text), reply.usage.input_tokens, reply.call_key)


def _ask(question: Question) -> str:
    """A question, and what its answer says where the text tells nothing, if that is given."""
    if not question.unknown:
        return question.text
    return f'{question.text}\nIf the text does not tell, the answer is "{question.unknown}"'


def number_passages(passages: Sequence[str]) -> str:
    """Write passages as prompts show them, a numbered paragraph each."""
    return "\n\n".join(f"[{number}] {one_line(text)}" for number, text in enumerate(passages, 1))


Part = tuple[str, Span]
"""A part of a document that is shown: its name in a citation, and its span."""


def cite_parts(document: Document, parts: Iterable[Part]) -> tuple[Citation, ...]:
    """Cite parts of a document, in their order. Turns are cited by ``mgl.memories.turns``."""
    return tuple(document.cite(name, span) for name, span in parts)


def cite_evidence(
    document: Document, said: str, question: Question, parts: Sequence[Part]
) -> tuple[Citation, ...]:
    """Cite the sentences of a document that tell most of an answer, in ``MOST_CITED`` of the named
    parts at most. Words find them; whether they bear it out is not asked. An answer that declines
    cites nothing."""
    if is_declined(said, question.unknown):
        return ()
    found = [
        (name, *find_evidence(document, span, said, question.text))
        for name, span in dict.fromkeys(parts)
    ]
    found.sort(key=lambda each: -each[2])
    cited = {span: name for name, span, share in found[:MOST_CITED] if share > 0}
    return cite_parts(document, ((name, span) for span, name in cited.items()))


class _Chosen(StrictReply):
    answer: str


def answer_field(question: Question, chars: int) -> Any:
    """The type of the field of a reply that answers: one of the question's options, or, if it has
    none, a text of about so many characters at most."""
    if question.options:
        return one_of(question.options)
    stripped = StringConstraints(strip_whitespace=True, min_length=1)
    return Annotated[str, stripped, max_chars(chars)]


def list_options(question: Question) -> str:
    """The options of a question as a prompt names them."""
    return ", ".join(f'"{option}"' for option in question.options)


CLAIM_TOKENS = 60
OPEN_QUESTION = "What happens?"

CLAIM = Prompt(
    "claiming.claim",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\n"
        "Answer the question in one short sentence, using only the passage above. "
        "Name who does what."
    ),
    variables=("block", "question"),
)

CLAIM_WITHOUT_QUESTION = Prompt(
    "claiming.claim_without_question",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\n"
        "Say in one short sentence the most important thing that the passage above tells. "
        "Name who does what."
    ),
    variables=("block",),
)

SUPPORTED = Prompt(
    "claiming.supported",
    source="ours",
    text=(
        "Passage from a book:\n{block}\n\nQuestion: {question}\nProposed answer: {claim}\n"
        "Does the passage above say this, and does it answer the question? Reply Yes or No."
    ),
    variables=("block", "question", "claim"),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a passage tells, and the model's P(Yes) that it says so and answers the question."""

    text: str
    support: float
    call_key: str | None


async def extract_claim(llm: LLM, passage: str, question: str | None) -> Claim | None:
    """The claim of a passage for a question, or for none; None where no reply could be used.

    Raises the EngineError family.
    """
    block = one_line(passage)
    if question is None:
        prompt, asked = CLAIM_WITHOUT_QUESTION.render(block=block), OPEN_QUESTION
    else:
        prompt, asked = CLAIM.render(block=block, question=question), question
    try:
        reply = await llm.complete(
            reader_messages(prompt), sampling=Sampling(max_tokens=CLAIM_TOKENS), stage="read"
        )
    except ReplyInvalid:
        return None
    said = one_line(reply.text)
    support = await find_support(llm, passage, asked, said)
    return Claim(said, support, reply.call_key)


async def find_support(llm: LLM, passage: str, question: str, claim: str) -> float:
    """P(Yes) that a passage says a claim, and that it answers the question."""
    check = SUPPORTED.render(block=one_line(passage), question=question, claim=claim)
    return await llm.probability_of_yes(reader_messages(check), stage="check")


TOKEN_CHARS = 4
JSON_TOKENS = 16


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """``problem`` says why no reply could be used; ``text`` is then the fallback."""

    text: str
    call_key: str | None = None
    problem: str | None = None


class _Noted(StrictReply):
    notes: str


async def summarize(
    llm: LLM, prompt: str, tokens: int, *, stage: str, fallback: str = ""
) -> WrittenNote:
    """A note of at most ``tokens``; ``fallback`` with the problem where no reply can be used.

    The prompt asks for ``{"notes": "..."}``. Raises what LLM.complete raises, but ReplyInvalid.
    """
    text = Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1), max_chars(TOKEN_CHARS * tokens)
    ]
    schema = create_model("notes", __base__=_Noted, notes=(text, ...))
    sampling = Sampling(max_tokens=tokens + JSON_TOKENS)
    try:
        reply = await llm.complete(reader_messages(prompt), schema, sampling=sampling, stage=stage)
    except ReplyInvalid as error:
        return WrittenNote(fallback, problem=error.message)
    (kept,) = await shorten(llm, [reply.parsed.notes], tokens)
    return WrittenNote(kept, reply.call_key)


def check_room(llm: LLM, tokens: int, option: str, *, reserve: int) -> None:
    """ContextOverflow where texts of so many tokens do not fit the model's context beside
    ``reserve`` and a prompt; ``option`` is what sets their size."""
    there = available_tokens(llm, 1, reserve=reserve)
    if tokens > there:
        raise ContextOverflow(
            f"{tokens:,} tokens of text, and {reserve:,} for notes and question, do not fit the "
            f"model's context of {llm.context_tokens:,}",
            hint=f"set {option} to {there} or less"
            if there > 0
            else "use a model with a longer context, or let notes have fewer tokens",
        )
