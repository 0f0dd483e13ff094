"""What models are trained on: rows of JSON lines, each with its source, its licence and its split.

    pairs, _ = collect(["longmemeval-s", "hotpotqa"], folder, hold_out=())
    train, development = split(pairs)

A ``Pair`` is a question and a text that holds evidence for it. A ``Dialogue`` is a conversation
with the places where its topic changes. An ``Example`` is a prompt with the completion that a
language model is to write, a ``Preference`` one with a better and a worse. Rows of one source
never fall on both sides of a split, which is made by the hash of the source before anything is
built from it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from mgl import registry
from mgl.benchmarks.base import Benchmark
from mgl.errors import InputError, UsageError, describe_fault
from mgl.llm.calls import content_hash
from mgl.llm.prompting import reader_messages
from mgl.memories.calls import SUPPORTED
from mgl.models.shipped import suggest
from mgl.prompt import one_line
from mgl.retrieval import LexicalIndex
from mgl.text import sentence_spans
from mgl.text.names import find_names
from mgl.training.hindsight import Evidence, write_edits
from mgl.types import Conversation, Document

__all__ = [
    "CORPORA",
    "DEVELOPMENT",
    "WRITTEN",
    "Dialogue",
    "Example",
    "Pair",
    "Preference",
    "Row",
    "collect",
    "describe_rows",
    "find_development",
    "hash_rows",
    "read_rows",
    "split",
    "write_rows",
]

DEVELOPMENT: Final = 10
"""One source of so many is kept for development."""

MOST_NEGATIVES: Final = 8

WRITTEN: Final = "own"
"""The corpus of questions that a model wrote about a text: nobody's labels."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, a text that helps to answer it, and texts of the same source that do not.

    ``source`` is the id of the document or conversation, ``corpus`` where it came from.
    """

    question: str
    positive: str
    negatives: tuple[str, ...]
    source: str
    corpus: str
    licence: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Lines of a conversation; ``shifts`` are the places of those that begin a topic, never 0."""

    lines: tuple[str, ...]
    shifts: tuple[int, ...]
    source: str
    corpus: str
    licence: str


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt, as (role, content) of its messages, and what a model is to answer.

    ``schema`` is the JSON schema that the answer is held to, as JSON, or empty. ``lineage`` has the
    keys of the calls that the row was made of.
    """

    prompt: tuple[tuple[str, str], ...]
    completion: str
    schema: str
    source: str
    corpus: str
    licence: str
    lineage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """A prompt, as an ``Example`` has it, with an answer that is better than another."""

    prompt: tuple[tuple[str, str], ...]
    chosen: str
    rejected: str
    schema: str
    source: str
    corpus: str
    licence: str
    lineage: tuple[str, ...] = ()


Row = Pair | Dialogue | Example | Preference
RowT = TypeVar("RowT", Pair, Dialogue, Example, Preference)


Reader = Callable[[Path, Collection[str]], Iterable[Row]]
"""Reads a file or folder, but for the sources of some names."""


def collect(names: Sequence[str], folder: Path, hold_out: Collection[str] = ()) -> list[Row]:
    """Read the rows of some corpora, each row once, without those of held-out sources.

    ``hold_out`` are a benchmark's names of sources (``conv-26``). UsageError for a corpus that is
    unknown, or not in the folder; InputError for files that are not what they should be.
    """
    rows: dict[Row, None] = {}
    for name in names:
        if name not in CORPORA:
            raise UsageError(
                f"there is no corpus called {name!r}",
                hint=f"{suggest(name, CORPORA)}there are: {', '.join(CORPORA)}",
            )
        part, read = CORPORA[name]
        if not (folder / part).exists():
            raise UsageError(
                f"{folder / part} is not there", hint="name the folder of the data with --data"
            )
        rows.update(dict.fromkeys(read(folder / part, hold_out)))
    return list(rows)


def find_development(names: Collection[str]) -> set[str]:
    """Find the sources that are kept for development: one of ``DEVELOPMENT`` by its hash, or that
    of the lowest hash."""
    hashes = {name: int(content_hash(name)[:8], 16) for name in names}
    kept = {name for name, value in hashes.items() if value % DEVELOPMENT == 0}
    return kept or {min(hashes, key=lambda name: hashes[name])}


def split(rows: Sequence[RowT]) -> tuple[list[RowT], list[RowT]]:
    """Part rows into those to train on and those of the development sources.

    Where pairs are all of one source, its texts are parted.
    """
    is_one = len({row.source for row in rows}) == 1
    names = [row.positive if is_one and isinstance(row, Pair) else row.source for row in rows]
    kept = find_development(set(names)) if rows else set()
    parts: tuple[list[RowT], list[RowT]] = ([], [])
    for name, row in zip(names, rows, strict=True):
        parts[name in kept].append(row)
    return parts


def describe_rows(rows: Sequence[Row]) -> dict[str, Any]:
    """Count rows: in all, by corpus, by licence, the sources and those kept for development."""
    sources = {row.source for row in rows}
    return {
        "rows": len(rows),
        "sources": len(sources),
        "development_sources": len(find_development(sources)),
        "by_corpus": dict(Counter(row.corpus for row in rows)),
        "by_licence": dict(Counter(row.licence for row in rows)),
    }


def hash_rows(rows: Sequence[Row], settings: Mapping[str, Any]) -> str:
    """Hash rows and the settings that they are trained with (sha256)."""
    return content_hash([*map(asdict, rows), dict(settings)])


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write rows as JSON lines; what was there is replaced."""
    lines = (json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="replace")


def read_rows(path: Path, kind: type[RowT]) -> list[RowT]:
    """Read the rows of a file; InputError, with the line, for one of another kind."""
    adapter = TypeAdapter(kind)
    rows: list[RowT] = []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # a text may hold other line ends
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", hint="give a file of `mgl train data`"
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(adapter.validate_json(line))
        except ValidationError as error:
            fault = describe_fault(dict(error.errors()[0]), "the row")
            raise InputError(
                f"{path}, line {number}, is no {kind.__name__.lower()}: {fault}",
                hint="make the file with `mgl train data`",
            ) from error
    if not rows:
        raise InputError(f"{path} has no rows", hint="make it with `mgl train data`")
    return rows


# Corpora


def _read_locomo(path: Path, hold_out: Collection[str]) -> Iterator[Pair]:
    return _of_benchmark("locomo", "CC BY-NC 4.0", path, hold_out)


def _read_longmemeval(path: Path, hold_out: Collection[str]) -> Iterator[Pair]:
    """Yield marked turns of haystacks; in files ``evidence*.json`` every turn is evidence."""
    for file in sorted(path.glob("*.json")):
        is_all = file.name.startswith("evidence")
        yield from _of_benchmark("longmemeval-s", "MIT", file, hold_out, is_all=is_all)


def _of_benchmark(
    name: str, licence: str, path: Path, hold_out: Collection[str], *, is_all: bool = False
) -> Iterator[Pair]:
    """Yield a pair for each turn of evidence, as its line, or for all turns of evidence sessions.

    With ``is_all`` the sources hold evidence alone.
    """
    benchmark: Benchmark = registry.load("benchmark", name)
    dataset = benchmark.read(path)
    talks: dict[str, Conversation] = {}
    for item in dataset.items:
        if item.source in hold_out:
            continue
        if item.source not in talks:
            source = dataset.sources[item.source]()
            assert isinstance(source, Conversation)
            talks = {item.source: source}
        talk = talks[item.source]
        lines = {turn.id: turn.line for turn in talk.turns if turn.text}
        found = {
            turn
            for turn in lines
            for evidence in item.evidence
            if turn == evidence or turn.startswith(f"{evidence}:")
        }
        if is_all:
            found = {*lines}
        for turn in sorted(found):
            yield Pair(item.question.text, lines[turn], (), talk.id, name, licence)


@dataclass(frozen=True, slots=True)
class _MultiHop:
    """A question over paragraphs, by title; those that are ``gold`` help to answer it."""

    question: str
    answer: str
    paragraphs: Mapping[str, str]
    gold: Collection[str]

    @property
    def texts(self) -> dict[str, str]:
        return {title: f"{title}: {text}" for title, text in self.paragraphs.items()}

    @property
    def source(self) -> str:
        return Document.from_text("", "\n".join(self.texts.values())).id


def _read_hotpotqa(path: Path) -> Iterator[_MultiHop]:
    """Yield the questions of both forms of its files."""
    for file in sorted(path.glob("hotpotqa*.json*")):
        text = file.read_text(encoding="utf-8")
        rows = map(json.loads, text.splitlines()) if file.suffix == ".jsonl" else json.loads(text)
        for row in rows:
            if "contexts" in row:
                gold = {each["title"] for each in row["contexts"] if each["is_supporting"]}
                paragraphs = {each["title"]: each["paragraph_text"] for each in row["contexts"]}
                answer = " ".join(row["answers_objects"][0]["spans"])
                yield _MultiHop(row["question_text"], answer, paragraphs, gold)
            else:
                gold = {title for title, _ in row["supporting_facts"]}
                paragraphs = {title: "".join(said) for title, said in row["context"]}
                yield _MultiHop(row["question"], row.get("answer", ""), paragraphs, gold)


def _read_musique(path: Path) -> Iterator[_MultiHop]:
    for file in sorted(path.glob("musique*.json")):
        for row in json.loads(file.read_text(encoding="utf-8")):
            paragraphs = {each["title"]: each["paragraph_text"] for each in row["paragraphs"]}
            gold = {each["title"] for each in row["paragraphs"] if each["is_supporting"]}
            yield _MultiHop(row["question"], row.get("answer", ""), paragraphs, gold)


_MULTI_HOP: Final = {
    "hotpotqa": ("CC BY-SA 4.0", _read_hotpotqa),
    "musique": ("CC BY 4.0", _read_musique),
}


def _read_paragraphs(corpus: str, path: Path, _: Collection[str]) -> Iterator[Pair]:
    """Yield the gold paragraphs of each question."""
    licence, read = _MULTI_HOP[corpus]
    for asked in read(path):
        negatives = tuple(t for title, t in asked.texts.items() if title not in asked.gold)
        for title, text in asked.texts.items():
            if title in asked.gold:
                yield Pair(
                    asked.question,
                    text,
                    negatives[:MOST_NEGATIVES],
                    asked.source,
                    corpus,
                    licence,
                )


def _read_support(corpus: str, path: Path, _: Collection[str]) -> Iterator[Example]:
    """Yield for each question whether a passage says the answer: of a gold paragraph that holds it,
    Yes, and one No: of the paragraph most like the question that does not hold it, or, for every
    other question by its hash, of the gold paragraph for another name in it."""
    licence, read = _MULTI_HOP[corpus]
    for asked in read(path):
        answer = asked.answer.casefold()
        texts = asked.texts
        helps = [texts[title] for title in texts if title in asked.gold]
        says = [text for text in helps if answer in text.casefold()]
        silent = [
            text for text in texts.values() if text not in helps and answer not in text.casefold()
        ]
        if answer in ("", "yes", "no") or not says or not silent:
            continue
        scores = LexicalIndex.of(silent).scores(asked.question)
        wrong = (silent[int(scores.argmax())], asked.answer)
        known = f"{asked.question} {asked.answer}".casefold()
        names = [name.name for name in find_names(says[0]) if name.name.casefold() not in known]
        if names and int(content_hash(asked.question)[:8], 16) % 2:
            wrong = (says[0], names[0])
        for passage, claim, reply in [(says[0], asked.answer, "Yes"), (*wrong, "No")]:
            prompt = SUPPORTED.render(
                block=one_line(passage), question=one_line(asked.question), claim=one_line(claim)
            )
            messages = tuple((each.role, each.content) for each in reader_messages(prompt))
            yield Example(messages, reply, "", asked.source, f"{corpus}-support", licence)


def _read_edits(corpus: str, path: Path, _: Collection[str]) -> Iterator[Example]:
    """Yield what MindGraph should have written about the blocks of each question's paragraphs.

    Of blocks that do not help, one is taken for two that do, by their hashes.
    """
    licence, find = _MULTI_HOP[corpus][0], _SENTENCES[corpus]
    for question, paragraphs, gold in find(path):
        starts, texts, length = {}, [], 0
        for title, text in paragraphs.items():
            starts[title] = length + len(title) + 2
            texts.append(f"{title}: {text}")
            length += len(texts[-1]) + 2
        evidence = [
            Evidence(starts[title] + start, starts[title] + end, title)
            for title, start, end in gold
        ]
        source = Document.from_text("", "\n".join(texts)).id  # as of the question's pairs
        asked = list(write_edits(Document.from_text("", "\n\n".join(texts)), question, evidence))
        empty = [one for one in asked if one.is_empty]
        empty.sort(key=lambda one: content_hash(one.prompt))
        left_out = empty[(len(asked) - len(empty)) // 2 :]
        for one in asked:
            if one not in left_out:
                prompt = (("user", one.prompt),)
                name = f"{corpus}-edits"
                yield Example(prompt, one.completion, one.schema, source, name, licence)


Gold = tuple[str, Mapping[str, str], Sequence[tuple[str, int, int]]]
"""A question, its paragraphs by title, and ranges of those that answer: (title, start, end)."""


def _find_hotpotqa_sentences(path: Path) -> Iterator[Gold]:
    """Find the sentences that people marked, in the files that have them."""
    for file in sorted(path.glob("hotpotqa*.json")):
        for row in json.loads(file.read_text(encoding="utf-8")):
            gold, marked = [], {(title, place) for title, place in row["supporting_facts"]}
            for title, said in row["context"]:
                start = 0
                for place, sentence in enumerate(said):
                    if (title, place) in marked:
                        gold.append((title, start, start + len(sentence)))
                    start += len(sentence)
            paragraphs = {title: "".join(said) for title, said in row["context"]}
            yield row["question"], paragraphs, gold


def _find_musique_sentences(path: Path) -> Iterator[Gold]:
    """Find the sentences of gold paragraphs that hold the answer to a step of the question.

    Left out are questions with a step whose answer no sentence of its paragraph holds.
    """
    for file in sorted(path.glob("musique*.json")):
        for row in json.loads(file.read_text(encoding="utf-8")):
            paragraphs = {each["title"]: each["paragraph_text"] for each in row["paragraphs"]}
            found = []
            for step in row["question_decomposition"]:
                each = row["paragraphs"][step["paragraph_support_idx"]]
                text, answer = paragraphs[each["title"]], step["answer"].casefold()
                spans = sentence_spans(text)
                found.append(
                    [
                        (each["title"], start, end)
                        for start, end in spans
                        if answer in text[start:end].casefold()
                    ]
                )
            if all(found):
                yield row["question"], paragraphs, [one for step in found for one in step[:1]]


_SENTENCES: Final = {"hotpotqa": _find_hotpotqa_sentences, "musique": _find_musique_sentences}


def _read_tiage(corpus: str, path: Path, _: Collection[str]) -> Iterator[Dialogue]:
    """Yield each chat with the turns that people labelled as the beginning of a topic."""
    for said in json.loads(path.read_text(encoding="utf-8")).values():
        lines = tuple(text for text, _ in said)
        shifts = tuple(place for place, (_, label) in enumerate(said) if label == "1")
        source = Document.from_text("", "\n".join(lines)).id
        yield Dialogue(lines, shifts, source, corpus, "MIT")


CORPORA: Final[Mapping[str, tuple[str, Reader]]] = {
    "longmemeval-s": ("longmemeval", _read_longmemeval),
    "hotpotqa": ("multihop", partial(_read_paragraphs, "hotpotqa")),
    "musique": ("multihop", partial(_read_paragraphs, "musique")),
    "hotpotqa-support": ("multihop", partial(_read_support, "hotpotqa")),
    "musique-support": ("multihop", partial(_read_support, "musique")),
    "hotpotqa-edits": ("multihop", partial(_read_edits, "hotpotqa")),
    "musique-edits": ("multihop", partial(_read_edits, "musique")),
    "locomo": ("locomo", _read_locomo),
    "tiage": ("tiage/train.json", partial(_read_tiage, "tiage")),
    "tiage-dev": ("tiage/dev.json", partial(_read_tiage, "tiage-dev")),
}
"""Human labels that mgl reads: where each lies in the data folder, and its reader."""
