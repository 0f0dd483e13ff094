"""Corpora with human labels, and the rows that models are trained on made of them.

    rows = collect(["longmemeval-s", "hotpotqa"], folder, hold_out=())

Multi-hop questions have gold paragraphs (and sentences), conversations gold turns, chats the places
where their topic changes. Of these are made pairs for retrievers, dialogues for boundaries, and for
language models what they should have edited, judged and answered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mgl import registry
from mgl.benchmarks.base import Benchmark, Item
from mgl.errors import UsageError
from mgl.llm.calls import content_hash
from mgl.llm.prompting import reader_messages
from mgl.memories.calls import SUPPORTED
from mgl.memories.turns import is_suggestion
from mgl.models.shipped import suggest
from mgl.prompt import one_line
from mgl.retrieval import LexicalIndex
from mgl.text import sentence_spans
from mgl.text.names import find_names
from mgl.training.data import MOST_NEGATIVES, Dialogue, Example, Pair, Row, RowOrigin
from mgl.training.hindsight import (
    MOST_TURNS,
    HelpfulSpan,
    write_answer,
    write_edits,
    write_passage_answer,
)
from mgl.types import Conversation, Document, Turn

MOST_ANSWER: Final = 160  # characters

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
            name = f"{corpus}-support"
            yield Example(_as_reader(prompt), reply, "", asked.source, name, licence)


def _as_reader(prompt: str) -> tuple[tuple[str, str], ...]:
    return tuple((each.role, each.content) for each in reader_messages(prompt))


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
            HelpfulSpan(starts[title] + start, starts[title] + end, title)
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


def _read_passage_answers(corpus: str, path: Path, _: Collection[str]) -> Iterator[Example]:
    """Yield what each question's gold paragraphs and others answer."""
    licence, read = _MULTI_HOP[corpus]
    for asked in read(path):
        if not asked.answer:
            continue
        texts = list(asked.texts.values())
        gold = {place for place, title in enumerate(asked.texts) if title in asked.gold}
        ask = write_passage_answer(texts, asked.question, asked.answer, gold)
        prompt, name = _as_reader(ask.prompt), f"{corpus}-answers"
        yield Example(prompt, ask.completion, "", asked.source, name, licence)


def _read_locomo_answers(path: Path, hold_out: Collection[str]) -> Iterator[Example]:
    """Yield what each question's turns answer; of the fifth category, that they do not."""
    dataset = registry.load("benchmark", "locomo-all").read(path)
    for item in dataset.items:
        if item.source in hold_out or not item.evidence:
            continue
        talk = dataset.sources[item.source]()
        gold = {place for place, turn in enumerate(talk.turns) if turn.id in item.evidence}
        answer = item.golds[0] if item.golds else None
        origin = RowOrigin(talk.id, "locomo-answers", "CC BY-NC 4.0")
        yield from _ask_turns(talk.turns, item, answer, gold, origin)


def _read_longmemeval_answers(path: Path, hold_out: Collection[str]) -> Iterator[Example]:
    """Yield what the turns of evidence answer among those of other questions; without them, for
    one question of four, and where nothing was told, that they do not."""
    for file in sorted(path.glob("evidence*.json")):
        dataset = registry.load("benchmark", "longmemeval-s").read(file)
        talks = {name: read() for name, read in dataset.sources.items() if name not in hold_out}
        told = [(turn, name) for name, talk in talks.items() for turn in talk.turns if turn.text]
        told.sort(key=lambda one: str(one[0].time))
        turns = [turn for turn, _ in told]
        for item in dataset.items:
            if item.source not in talks:
                continue
            gold = {place for place, (_, name) in enumerate(told) if name == item.source}
            is_told = item.labels["abstention"] != "yes"
            answer = item.golds[0] if is_told and item.golds else None
            origin = RowOrigin(talks[item.source].id, "longmemeval-answers", "MIT")
            yield from _ask_turns(turns, item, answer, gold, origin)
            if int(content_hash(item.id)[:8], 16) % 4 == 0:
                others = [turn for turn, name in told if name != item.source]
                yield from _ask_turns(others, item, None, (), origin)


def _ask_turns(
    turns: Sequence[Turn],
    item: Item,
    answer: str | None,
    shown: Collection[int],
    origin: RowOrigin,
) -> Iterator[Example]:
    """Yield the row of a question, unless its answer is a rubric or stands on too many turns."""
    if len(shown) > MOST_TURNS or is_suggestion(item.question.text):
        return
    if answer is not None and (len(answer) > MOST_ANSWER or "acceptable" in answer):
        return
    ask = write_answer(turns, item.question, answer, shown)
    yield Example((("user", ask.prompt),), ask.completion, ask.schema, *origin)


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
    "hotpotqa-answers": ("multihop", partial(_read_passage_answers, "hotpotqa")),
    "musique-answers": ("multihop", partial(_read_passage_answers, "musique")),
    "longmemeval-answers": ("longmemeval", _read_longmemeval_answers),
    "locomo-answers": ("locomo", _read_locomo_answers),
    "locomo": ("locomo", partial(_of_benchmark, "locomo", "CC BY-NC 4.0")),
    "tiage": ("tiage/train.json", partial(_read_tiage, "tiage")),
    "tiage-dev": ("tiage/dev.json", partial(_read_tiage, "tiage-dev")),
}
"""Human labels that mgl reads: where each lies in the data folder, and its reader."""
