#!/usr/bin/env python3
"""How often replies break their form, held to their constraint and not, on a real server.

    scripts/bench/constraint_faults.py --base-url URL --model PROFILE --text FILE… --question TEXT…
                              [--replies 1000] [--each 200] [--free 200] [--free-each 30] --out FILE

Builds MindGraph over the texts until ``--replies`` build replies are there, half of them citing by
quote and half by sentence (with what does not change first in the prompt, which a server reads
faster); then asks for ``--each`` replies under each other constraint, over passages of the same
texts; then repeats some of each kind's prompts without any constraint (``--free`` of MindGraph's in
all, ``--free-each`` of each other kind's). Every reply is read again here, from its text and the
schema that was asked for: whether it is JSON, of the right form, names ids that exist, cites text
that is there, and keeps the rules that no grammar can force. What the client repaired afterwards is
counted apart.

Every reply is a JSON line in ``--out``, and the Markdown table that is printed is read off it. What
is there already is not asked again, so a run that was ended goes on with the kind it was at.
MGL_API_KEY is the server's key, if it asks for one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, create_model

from mgl.errors import EngineError
from mgl.llm.base import Engine, Message, Request, Sampling
from mgl.llm.calls import CallRecord, MemoryCallLog
from mgl.llm.capabilities import Endpoint
from mgl.llm.client import Client, Policy
from mgl.llm.constraints import (
    RULES,
    disjoint,
    index_set,
    max_chars,
    new_id,
    number,
    one_of,
    part_of,
    sentence_of,
    several,
)
from mgl.llm.engines import open_engine
from mgl.llm.replies import clean, validate
from mgl.memories.base import Tools
from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.models.profiles import load_profile
from mgl.observer import SilentObserver
from mgl.serving.probe import probe
from mgl.store import Store
from mgl.text import read_document, sentence_spans
from mgl.types import Document, Question

Cite = Literal["quote", "sentence"]
BLOCKS, BLOCK_TOKENS, OPERATIONS, REPLY_TOKENS = 4, 180, 2, 700
FREE_TOKENS = REPLY_TOKENS
LAST_S, IN_FLIGHT = 600.0, 48
CLAIM = Annotated[str, max_chars(60)]
FAULTS = ("not JSON", "wrong form", "id of nothing", "edge to nothing", "source not there", *RULES)


@dataclass
class Kind:
    """Replies of one kind: ``faults`` counts replies, each under the first fault it has."""

    name: str
    held: bool
    replies: int = 0
    cut: int = 0
    tokens: int = 0
    repaired: int = 0
    given_up: int = 0
    faults: Counter[str] = field(default_factory=Counter)


def reply(**fields: Any) -> type[BaseModel]:
    named: Any = {name: (kind, ...) for name, kind in fields.items()}
    made: type[BaseModel] = create_model("reply", **named)
    return made


# What a MindGraph reply says, read without the code that disposes of it.


def graph_fault(text: str, schema: Any) -> str | None:
    """The first fault of a build reply, told from its text and the schema it was asked under."""
    try:
        operations = json.loads(clean(text))["operations"]
        named = [operation["op"] for operation in operations]
    except (ValueError, TypeError, KeyError) as error:
        return "not JSON" if isinstance(error, ValueError) else "wrong form"
    kinds = schema["properties"]["operations"]["items"]["oneOf"]
    forms = {kind["properties"]["op"]["const"]: kind["properties"] for kind in kinds}
    if any(op not in ("add_node", "add_edge", "edit_node", "delete_node") for op in named):
        return "wrong form"
    known = set(forms.get("delete_node", {}).get("id", {}).get("enum", ()))
    if "const" in forms.get("delete_node", {}).get("id", {}):
        known = {forms["delete_node"]["id"]["const"]}
    added = {operation.get("id") for operation in operations if operation["op"] == "add_node"}
    found: list[str | None] = []
    for operation in operations:
        form = forms.get(operation["op"])
        if form is None or (operation["op"] not in ("add_node", "add_edge") and not known):
            found.append("id of nothing")
        elif set(operation) != set(form):
            found.append("wrong form")
        else:
            found.append(operation_fault(operation, form, known, added))
    return min(filter(None, found), key=FAULTS.index, default=None)


def operation_fault(
    operation: dict[str, Any], form: Any, known: set[str], added: set[Any]
) -> str | None:
    if operation["op"] in ("edit_node", "delete_node") and operation["id"] not in known:
        return "id of nothing"
    source = form.get("src")
    if source is not None and not cited(operation["src"], source):
        return "source not there"
    if operation["op"] == "add_edge" and not {operation["source"], operation["target"]} <= (
        known | added
    ):
        return "edge to nothing"
    return None


def cited(said: Any, source: Any) -> bool:
    if "enum" in source:
        return said in source["enum"]
    return isinstance(said, int) and source["minimum"] <= said <= source["maximum"]


# The other constraints: a prompt, its schema, and the texts that a quote must be in.


def passages(documents: Sequence[Document], sentences: int) -> Iterator[list[str]]:
    """Runs of sentences from all over the texts, each text in turn."""
    spans = [sentence_spans(document.text, 0, len(document.text)) for document in documents]
    for turn in count():
        document, own = documents[turn % len(documents)], spans[turn % len(documents)]
        start = (turn // len(documents)) * sentences % (len(own) - sentences)
        chosen = (document.text[a:b] for a, b in own[start : start + sentences])
        yield [" ".join(text.split()) for text in chosen]


def numbered(texts: Sequence[str]) -> str:
    return "\n".join(f"[{index}] {text}" for index, text in enumerate(texts))


def names(texts: Sequence[str]) -> list[str]:
    words = (word.strip(".,;:!?\"'“”‘’()—-") for text in texts for word in text.split())
    return list(dict.fromkeys(w for w in words if len(w) > 3 and w.isalpha()))[:12]


def tasks(documents: Sequence[Document], each: int) -> Iterator[tuple[str, str, type[BaseModel]]]:
    source = passages(documents, 6)
    for _ in range(each):
        texts = next(source)
        shown, words = numbered(texts), names(texts)
        ids = [f"{word.lower()}_{place}" for place, word in enumerate(words)]
        yield (
            "one of the ids",
            f"{shown}\n\nWhich of these is the text most about: {', '.join(ids)}? Reply in JSON: "
            '{"id": "…", "claim": "one short sentence"}',
            reply(id=one_of(ids), claim=CLAIM),
        )
        yield (
            "a new id and a number",
            f"{shown}\n\nName one thing by a snake_case id and say which sentence it is in: "
            '{"n": number, "id": "…", "claim": "one short sentence"}',
            reply(n=number(0, len(texts) - 1), id=new_id(), claim=CLAIM),
        )
        yield (
            "a whole sentence",
            f"{shown}\n\nQuote the sentence that tells most and say what it tells: "
            '{"src": "exact quote", "claim": "one short sentence"}',
            reply(src=sentence_of(texts), claim=CLAIM),
        )
        yield (
            "a part of the text",
            f"{' '.join(texts)}\n\nQuote the words that tell most and say what they tell: "
            '{"src": "exact quote", "claim": "one short sentence"}',
            reply(src=part_of(" ".join(texts), 200), claim=CLAIM),
        )
        yield (
            "boundaries",
            f"{shown}\n\nAfter which sentences does the topic change? "
            '{"boundaries": [indices in increasing order]}',
            reply(boundaries=index_set(len(texts) - 1)),
        )
        merge = reply(points=index_set(len(texts), least=2), description=CLAIM)
        yield (
            "merges",
            f"{shown}\n\nWhich of these belong together? No sentence may be in two groups. "
            '{"merges": [{"points": [indices], "description": "what they say"}]}',
            reply(merges=disjoint(several(merge, 3), "points")),
        )
        category = reply(category=Annotated[str, max_chars(40)], indexes=index_set(6, least=1))
        yield (
            "categories",
            f"{numbered(words[:6])}\n\nGroup all of these into categories; none may be left over. "
            '{"categories": [{"category": "name", "indexes": [indices]}]}',
            reply(categories=several(category, 6, least=1)),
        )


def form_fault(text: str, kind: type[BaseModel], schema: Any) -> str | None:
    cleaned = clean(text)
    verdict = validate(cleaned, kind)
    if verdict.outcome != "ok":
        return verdict.rule or ("not JSON" if verdict.unconstrained else "wrong form")
    said = verdict.parsed.model_dump()
    source = schema["properties"].get("src", {})
    there = said.get("src") in source.get("enum", ()) or said.get("src", "") in source.get(
        "substring", ""
    )
    return "source not there" if "src" in said and not there else None


# Running.


async def build_replies(
    client: Client, documents: Sequence[Document], questions: Sequence[str], cite: Cite, wanted: int
) -> None:
    """Builds over as many pages of the texts as give ``wanted`` replies, if there are so many."""
    config = MindGraphConfig(
        cite=cite,
        prompt_order="cached",
        chunk_tokens=BLOCK_TOKENS,
        max_operations=OPERATIONS,
        build_tokens=REPLY_TOKENS,
    )
    pages = page_documents(documents)[: -(-wanted // BLOCKS)]
    slots = asyncio.Semaphore(IN_FLIGHT)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "check.db") as store:
        tools = Tools(client, store, SilentObserver(), time.time)

        async def one(page: Document, question: str) -> None:
            async with slots:
                store.put_document(page)
                await MindGraph(tools, page, [Question(question)], config).build()

        await asyncio.gather(
            *(one(page, questions[n % len(questions)]) for n, page in enumerate(pages))
        )


def page_documents(documents: Sequence[Document]) -> list[Document]:
    """The texts in pages of some blocks each, the first of each text first."""
    size = BLOCKS * BLOCK_TOKENS * 4
    starts = range(0, max(len(document.text) for document in documents) - size, size)
    cuts = [d.text[start : start + size] for start in starts for d in documents]
    return [Document.from_text("page", text) for text in cuts if len(text) == size]


async def freely(engine: Engine, request: Request) -> tuple[str, bool, int]:
    sampling = replace(request.sampling, max_tokens=FREE_TOKENS)
    answer = await engine.generate(replace(request, json_schema=None, sampling=sampling))
    return answer.text, answer.finish_reason == "length", answer.usage.output_tokens


def first_attempts(records: Sequence[CallRecord]) -> list[CallRecord]:
    """The calls that repair nothing: seed, budget and messages are those first asked with."""
    asked = Sampling(max_tokens=REPLY_TOKENS)
    return [r for r in records if r.request.sampling == asked and len(r.request.messages) == 1]


async def run(arguments: argparse.Namespace) -> None:
    profile = load_profile(arguments.model)
    documents = [read_document(path) for path in arguments.text]
    key = os.environ.get("MGL_API_KEY")
    found = await probe(arguments.base_url, key, profile.name)
    print(f"{found.server} obeys {', '.join(found.formats) or 'nothing'}", file=sys.stderr)
    endpoint = Endpoint(arguments.base_url, key, capabilities=found)
    engine = await open_engine(profile, "openai", endpoint=endpoint)
    there = {(kind.name, kind.held) for kind in counted(arguments.out)}
    kept = arguments.out.open("a", encoding="utf-8")
    free = asyncio.Semaphore(IN_FLIGHT)

    def write(**row: Any) -> None:
        print(json.dumps(row, ensure_ascii=False), file=kept, flush=True)

    def note(name: str, held: bool, text: str, cut: bool, tokens: int, fault: str | None) -> None:
        write(kind=name, held=held, cut=cut, tokens=tokens, fault=fault, text=text)

    def note_repairs(name: str, repaired: int, given_up: int = 0) -> None:
        write(kind=name, held=True, repaired=repaired, given_up=given_up)

    def said(record: CallRecord) -> tuple[str, bool, int]:
        done = record.completion
        assert done is not None
        return done.text, done.finish_reason == "length", done.usage.output_tokens

    async def repeat_freely(name: str, requests: Sequence[Request], fault: Any) -> None:
        if (name, False) in there:
            return

        async def one(request: Request) -> None:
            async with free:
                text, cut, tokens = await freely(engine, request)
            note(name, False, text, cut, tokens, fault(text, request))

        await asyncio.gather(*(one(request) for request in requests))

    def progress(what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)

    try:
        for cite in ("sentence", "quote"):
            name, log = f"MindGraph edits, cite {cite}", MemoryCallLog()
            held = (name, True) not in there
            if not held and (name, False) in there:
                continue
            wanted = arguments.replies // 2 if held else arguments.free // 2
            client = Client(engine, log, Policy(timeout_s=LAST_S, concurrency=IN_FLIGHT))
            await build_replies(client, documents, arguments.question, cite, wanted)
            records = [r for r in first_attempts(log.records) if r.completion is not None][:wanted]
            progress(f"{name}: {len(records)} held replies")
            if held:
                for record in records:
                    text, cut, tokens = said(record)
                    fault = graph_fault(text, record.request.json_schema)
                    note(name, True, text, cut, tokens, fault)
                note_repairs(name, len(log.records) - len(first_attempts(log.records)))
            chosen = random.Random(0).sample(records, min(len(records), arguments.free // 2))
            await repeat_freely(
                name, [r.request for r in chosen], lambda t, r: graph_fault(t, r.json_schema)
            )
            progress(f"{name}: {len(chosen)} free replies")
        if not any(name == "categories" for name, _ in there):
            await other_constraints(
                engine, documents, arguments, note, note_repairs, repeat_freely, progress
            )
    finally:
        await engine.aclose()
        kept.close()


async def other_constraints(
    engine: Engine,
    documents: Sequence[Document],
    arguments: argparse.Namespace,
    note: Any,
    note_repairs: Any,
    repeat_freely: Any,
    progress: Any,
) -> None:
    log = MemoryCallLog()
    client = Client(engine, log, Policy(timeout_s=LAST_S, concurrency=IN_FLIGHT))
    made = list(tasks(documents, arguments.each))
    types = {prompt: (name, kind) for name, prompt, kind in made}
    given_up: Counter[str] = Counter()
    repaired: Counter[str] = Counter()

    async def ask(name: str, prompt: str, kind: type[BaseModel]) -> None:
        sampling = Sampling(max_tokens=REPLY_TOKENS)
        try:
            await client.complete([Message("user", prompt)], kind, sampling=sampling, stage=name)
        except EngineError:
            given_up[name] += 1

    await asyncio.gather(*(ask(*task) for task in made))
    requests: dict[str, list[Request]] = {}
    for record in log.records:
        name, kind = types[record.request.messages[0].content]
        if record.completion is None:
            continue
        if record not in first_attempts([record]):
            repaired[name] += 1
            continue
        text, done = record.completion.text, record.completion
        cut, tokens = done.finish_reason == "length", done.usage.output_tokens
        note(name, True, text, cut, tokens, form_fault(text, kind, record.request.json_schema))
        requests.setdefault(name, []).append(record.request)
    progress(f"{len(made)} held replies under the other constraints")
    for name in requests:
        note_repairs(name, repaired[name], given_up[name])
    for name, asked in requests.items():
        await repeat_freely(
            name,
            asked[: arguments.free_each],
            lambda t, r: form_fault(t, types[r.messages[0].content][1], r.json_schema),
        )
        progress(f"{name}: free replies")


def counted(path: Path) -> list[Kind]:
    """The replies that a file holds, by kind, in the order in which the kinds came."""
    kinds: dict[tuple[str, bool], Kind] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for row in map(json.loads, lines):
        name = (row["kind"], row["held"])
        kind = kinds.setdefault(name, Kind(*name))
        kind.repaired += row.get("repaired", 0)
        kind.given_up += row.get("given_up", 0)
        if "text" in row:
            kind.replies += 1
            kind.cut += row["cut"]
            kind.tokens += row["tokens"]
            if row["fault"] is not None and not row["cut"]:
                kind.faults[row["fault"]] += 1
    return list(kinds.values())


def table(kinds: Sequence[Kind]) -> str:
    heads = ["replies", "held", "n", "cut off", *FAULTS, "repair calls", "given up", "tokens"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for kind in sorted(kinds, key=lambda k: (not k.held,)):
        cells: list[Any] = [kind.name, "yes" if kind.held else "no", kind.replies, kind.cut]
        cells += [kind.faults[fault] for fault in FAULTS]
        cells += [kind.repaired, kind.given_up, round(kind.tokens / max(1, kind.replies))]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", default="smollm2-135m", help="model profile")
    parser.add_argument("--text", type=Path, nargs="+", required=True)
    parser.add_argument("--question", nargs="+", default=["Who is who, and what do they want?"])
    parser.add_argument("--replies", type=int, default=1000)
    parser.add_argument("--each", type=int, default=200)
    parser.add_argument("--free", type=int, default=200)
    parser.add_argument("--free-each", type=int, default=30)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    asyncio.run(run(arguments))
    print(table(counted(arguments.out)))


if __name__ == "__main__":
    main()
