#!/usr/bin/env python3
"""Count how often replies break their form on a real server, with a constraint and without.

    python scripts/bench/constraint_faults.py --base-url URL --text FILE... --out FILE

Builds MindGraph over the texts for ``--replies`` build replies, half of them citing by sentence and
half by quote (with what does not change first in the prompt, which a server reads faster); then
asks for ``--each`` replies under each other constraint, over passages of the same texts; then
repeats some of each kind's prompts without a constraint (``--free`` of MindGraph's in all,
``--free-each`` of each other kind's). Every reply is checked again here, from its text and schema:
whether it is JSON, of the right form, names ids that exist, cites text that is there, and keeps the
rules that no grammar can force. What the client repaired afterwards is counted apart.

Every reply is a JSON line in ``--out``, from which the Markdown table is made. An interrupted run
resumes with the kind of reply that it was at. MGL_API_KEY is the server's key, if it needs one.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, create_model

from mgl.errors import EngineError
from mgl.llm.base import Completion, Engine, Message, Request, Sampling
from mgl.llm.calls import CallRecord, MemoryCallLog
from mgl.llm.capabilities import Endpoint
from mgl.llm.client import Client, Policy
from mgl.llm.constraints import (
    RULES,
    index_set,
    max_chars,
    new_id,
    number,
    one_of,
    part_of,
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

Cite = Literal["sentence", "quote"]
FindFault = Callable[[str, Request], str | None]
BLOCKS, BLOCK_TOKENS, OPERATIONS, REPLY_TOKENS = 4, 180, 2, 700
FREE_TOKENS = REPLY_TOKENS
LAST_S, IN_FLIGHT = 600.0, 48
CLAIM = Annotated[str, max_chars(60)]
FAULTS = ("not JSON", "wrong form", "id of nothing", "edge to nothing", "source not there", *RULES)


@dataclass
class Kind:
    """Counts of one kind of reply; ``faults`` has each reply under its first fault only."""

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


# MindGraph's replies, checked without the code that mgl checks them with.


def graph_fault(text: str, schema: Any) -> str | None:
    """Find the first fault of a build reply from its text and schema."""
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
    if source is not None and not is_cited(operation["src"], source):
        return "source not there"
    if operation["op"] == "add_edge" and not {operation["source"], operation["target"]} <= (
        known | added
    ):
        return "edge to nothing"
    return None


def is_cited(said: Any, source: Any) -> bool:
    if "enum" in source:
        return said in source["enum"]
    return isinstance(said, int) and source["minimum"] <= said <= source["maximum"]


# The other constraints: a prompt, its schema, and the texts that a quote must be in.


def passages(documents: Sequence[Document], sentences: int) -> Iterator[list[str]]:
    """Yield runs of sentences from all over the texts, each text in turn."""
    spans = [sentence_spans(document.text, 0, len(document.text)) for document in documents]
    for turn in count():
        document, own = documents[turn % len(documents)], spans[turn % len(documents)]
        start = (turn // len(documents)) * sentences % (len(own) - sentences)
        chosen = (document.text[a:b] for a, b in own[start : start + sentences])
        yield [" ".join(text.split()) for text in chosen]


def number_lines(texts: Sequence[str]) -> str:
    return "\n".join(f"[{index}] {text}" for index, text in enumerate(texts))


def find_words(texts: Sequence[str]) -> list[str]:
    words = (word.strip(".,;:!?\"'“”‘’()—-") for text in texts for word in text.split())
    return list(dict.fromkeys(w for w in words if len(w) > 3 and w.isalpha()))[:12]


def tasks(documents: Sequence[Document], each: int) -> Iterator[tuple[str, str, type[BaseModel]]]:
    source = passages(documents, 6)
    for _ in range(each):
        texts = next(source)
        shown, words = number_lines(texts), find_words(texts)
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
            reply(src=one_of(texts), claim=CLAIM),
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
            f"{shown}\n\nWhich of these belong together? "
            '{"merges": [{"points": [indices], "description": "what they say"}]}',
            reply(merges=several(merge, 3)),
        )
        category = reply(category=Annotated[str, max_chars(40)], indexes=index_set(6, least=1))
        yield (
            "categories",
            f"{number_lines(words[:6])}\n\nGroup all of these into categories; "
            "none may be left over. "
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
    """Build over as many pages as give ``wanted`` replies, or over all."""
    config = MindGraphConfig(
        cite=cite,
        chunk_tokens=BLOCK_TOKENS,
        max_operations=OPERATIONS,
        build_tokens=REPLY_TOKENS,
    )
    pages = page_documents(documents)[: -(-wanted // BLOCKS)]
    slots = asyncio.Semaphore(IN_FLIGHT)
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "check.db") as store:
        tools = Tools(client, store, SilentObserver())

        async def one(page: Document, question: str) -> None:
            async with slots:
                store.put_document(page)
                await MindGraph(tools, page, [Question(question)], config).build()

        await asyncio.gather(
            *(one(page, questions[n % len(questions)]) for n, page in enumerate(pages))
        )


def page_documents(documents: Sequence[Document]) -> list[Document]:
    """Cut the texts into pages of some blocks each, the first page of each text first."""
    size = BLOCKS * BLOCK_TOKENS * 4
    starts = range(0, max(len(document.text) for document in documents) - size, size)
    cuts = [d.text[start : start + size] for start in starts for d in documents]
    return [Document.from_text("page", text) for text in cuts if len(text) == size]


def is_first_attempt(record: CallRecord) -> bool:
    """Whether a call repairs nothing: budget, seed and messages are those of the first attempt."""
    request = record.request
    return request.sampling == Sampling(max_tokens=REPLY_TOKENS) and len(request.messages) == 1


class Check:
    """One run against one server: asks for replies and writes a JSON line for each."""

    def __init__(self, engine: Engine, documents: list[Document], options: argparse.Namespace):
        self.engine = engine
        self.documents = documents
        self.options = options
        self.done = {(kind.name, kind.held) for kind in read_results(options.out)}

    def write(self, **row: Any) -> None:
        with self.options.out.open("a", encoding="utf-8") as lines:
            print(json.dumps(row, ensure_ascii=False), file=lines, flush=True)

    def write_reply(self, name: str, held: bool, done: Completion, fault: str | None) -> None:
        cut, tokens = done.finish_reason == "length", done.usage.output_tokens
        self.write(kind=name, held=held, cut=cut, tokens=tokens, fault=fault, text=done.text)

    def open_client(self, log: MemoryCallLog) -> Client:
        return Client(self.engine, log, Policy(timeout_s=LAST_S, concurrency=IN_FLIGHT))

    async def check_edits(self, cite: Cite) -> None:
        """Build until there are enough replies, then repeat some without a constraint."""
        name, log, options = f"MindGraph edits, cite {cite}", MemoryCallLog(), self.options
        held = (name, True) not in self.done
        if not held and (name, False) in self.done:
            return
        wanted = options.replies // 2 if held else options.free // 2
        await build_replies(self.open_client(log), self.documents, options.question, cite, wanted)
        first = [record for record in log.records if is_first_attempt(record)]
        records = [record for record in first if record.completion is not None][:wanted]
        report(f"{name}: {len(records)} constrained replies")
        if held:
            for record in records:
                assert record.completion is not None
                fault = graph_fault(record.completion.text, record.request.json_schema)
                self.write_reply(name, True, record.completion, fault)
            repaired = len(log.records) - len(first)
            self.write(kind=name, held=True, repaired=repaired, given_up=0)
        chosen = random.Random(0).sample(records, min(len(records), options.free // 2))
        requests = [record.request for record in chosen]
        await self.repeat_freely(name, requests, lambda t, r: graph_fault(t, r.json_schema))

    async def check_others(self) -> None:
        """Ask for replies under each other constraint, then for some without."""
        if any(name == "categories" for name, _ in self.done):
            return
        log = MemoryCallLog()
        client = self.open_client(log)
        asked = list(tasks(self.documents, self.options.each))
        types = {prompt: (name, kind) for name, prompt, kind in asked}
        given_up, repaired = Counter[str](), Counter[str]()

        async def ask(name: str, prompt: str, kind: type[BaseModel]) -> None:
            sampling, messages = Sampling(max_tokens=REPLY_TOKENS), [Message("user", prompt)]
            try:
                await client.complete(messages, kind, sampling=sampling, stage=name)
            except EngineError:
                given_up[name] += 1

        def find_fault(text: str, request: Request) -> str | None:
            return form_fault(text, types[request.messages[0].content][1], request.json_schema)

        await asyncio.gather(*(ask(*task) for task in asked))
        requests: dict[str, list[Request]] = {}
        for record in log.records:
            name, _ = types[record.request.messages[0].content]
            if record.completion is None:
                continue
            if is_first_attempt(record):
                fault = find_fault(record.completion.text, record.request)
                self.write_reply(name, True, record.completion, fault)
                requests.setdefault(name, []).append(record.request)
            else:
                repaired[name] += 1
        report(f"{len(asked)} replies under the other constraints")
        for name in requests:
            self.write(kind=name, held=True, repaired=repaired[name], given_up=given_up[name])
        for name, own in requests.items():
            await self.repeat_freely(name, own[: self.options.free_each], find_fault)

    async def repeat_freely(
        self, name: str, requests: Sequence[Request], find_fault: FindFault
    ) -> None:
        """Repeat requests without their constraint."""
        if (name, False) in self.done:
            return
        slots = asyncio.Semaphore(IN_FLIGHT)

        async def repeat(request: Request) -> None:
            sampling = replace(request.sampling, max_tokens=FREE_TOKENS)
            async with slots:
                done = await self.engine.generate(
                    replace(request, json_schema=None, sampling=sampling)
                )
            self.write_reply(name, False, done, find_fault(done.text, request))

        await asyncio.gather(*map(repeat, requests))
        report(f"{name}: {len(requests)} free replies")


def report(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


async def run(options: argparse.Namespace) -> None:
    profile, key = load_profile(options.model), os.environ.get("MGL_API_KEY")
    found = await probe(options.base_url, key, profile.name)
    report(f"{found.server} obeys {', '.join(found.formats) or 'nothing'}")
    endpoint = Endpoint(options.base_url, key, capabilities=found)
    engine = await open_engine(profile, "openai", endpoint=endpoint)
    check = Check(engine, [read_document(path) for path in options.text], options)
    try:
        for cite in get_args(Cite):
            await check.check_edits(cite)
        await check.check_others()
    finally:
        await engine.aclose()


def read_results(path: Path) -> list[Kind]:
    """Count the replies in a file by kind, in the order in which the kinds came."""
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


def format_table(kinds: Sequence[Kind]) -> str:
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
    print(format_table(read_results(arguments.out)))


if __name__ == "__main__":
    main()
