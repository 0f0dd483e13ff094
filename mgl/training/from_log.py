"""Rows from the log of calls: what a model wrote, by what came of it.

    found = read_run(Path("runs/locomo"), store)
    found.examples, found.preferences, found.won

Of a run, calls are learnt from whose memory earned it (rejection sampling): the answer was right
and better than what the same model answered from plain passages and from the whole source, and it
cites nodes that the call wrote. Of every log, an answer without the edits that were rejected, and
with those that the model mended when it was told, is better than the answer as it was: prompt and
state are the same. Of a run, so is a call that earned it than another sample that did not.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mgl import registry
from mgl.benchmarks.base import Benchmark
from mgl.errors import UsageError
from mgl.evaluation.audit import RIGHT
from mgl.evaluation.records import Calls
from mgl.evaluation.runs.folder import open_run
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.runs.units import list_calls
from mgl.llm.calls import CallRecord
from mgl.llm.replies import clean
from mgl.llm.schemas import print_reply
from mgl.store import MemoryRecord, Store
from mgl.training.data import Example, Preference, RowOrigin

PLAIN: Final = ("direct", "naive-rag")
"""Kinds of memory that a graph has to be better than, for its calls to be learnt from."""

OWN_LICENCE: Final = "the user's"

EDITS: Final = "operations"
"""Where a reply has its edits, one row of the log each."""


@dataclass(frozen=True, slots=True)
class LogRows:
    """What a log holds to learn from. ``questions`` were asked, ``won`` of them earned it."""

    examples: tuple[Example, ...] = ()
    preferences: tuple[Preference, ...] = ()
    questions: int = 0
    won: int = 0


@dataclass(frozen=True, slots=True)
class _Reply:
    """A call with its reply, and ``kept``: the reply without edits that did not go in as they were.

    None where that cannot be told: it is no list of edits, and not all of them went in.
    """

    call: CallRecord
    whole: Any
    kept: Any | None

    @property
    def prompt(self) -> tuple[tuple[str, str], ...]:
        return tuple((each.role, each.content) for each in self.call.request.messages)

    @property
    def text(self) -> str:
        return "" if self.call.completion is None else clean(self.call.completion.text)

    @property
    def schema(self) -> str:
        described = self.call.request.json_schema
        return "" if described is None else json.dumps(described, ensure_ascii=False)


def read_memory(store: Store, record: MemoryRecord) -> LogRows:
    """Read what the log of a memory says of its model's edits; it says nothing of their worth."""
    origin = RowOrigin(record.document_id, f"{record.kind}-log", OWN_LICENCE)
    replies = _find_replies(store, list_calls(store.edits(record.id)))
    return LogRows(preferences=tuple(_prefer_mended(replies, origin)))


def read_run(folder: Path, store: Store, hold_out: Collection[str] = ()) -> LogRows:
    """Read the rows of an evaluation run whose calls are in ``store``.

    Sources of the names ``hold_out`` are left out. UsageError for a run without a graph memory, or
    without the plain methods of the same model beside it.
    """
    manifest, log = open_run(folder)
    benchmark: Benchmark = registry.load("benchmark", manifest.arguments.benchmark)
    corpus, licence = f"{benchmark.name}-log", benchmark.about.licence
    examples: dict[tuple[Any, ...], Example] = {}
    preferences: dict[tuple[Any, ...], Preference] = {}
    questions = won = 0
    for label, rivals in _find_rivals(manifest).items():
        earned: list[tuple[_Reply, RowOrigin]] = []
        failed: list[_Reply] = []
        for record in log.answers.values():
            source = str(record.item["source"])
            if record.method != label or record.failed or source in hold_out:
                continue
            build = log.find_build(record)
            calls = record.calls or (build.calls if build is not None else {})
            replies = _find_replies(store, calls)
            origin = RowOrigin(str(record.memory.get("source", source)), corpus, licence)
            for pair in _prefer_mended(replies, origin):
                preferences.setdefault((pair.prompt, pair.chosen, pair.rejected), pair)
            questions += 1
            score = record.value(manifest.headline) or 0.0
            plain = [log.answers.get((rival, *record.key[1:])) for rival in rivals]
            beaten = [one.value(manifest.headline) or 0.0 for one in plain if one is not None]
            if score >= RIGHT and len(beaten) == len(rivals) and score > max(beaten):
                won += 1
                earned += [(replies[key], origin) for key in record.credited if key in replies]
            elif score < RIGHT:
                failed += replies.values()
        for reply, origin in earned:
            if reply.kept is not None:
                text, key = _print(reply.kept), reply.call.key
                row = Example(reply.prompt, text, reply.schema, *origin, (key,))
                examples.setdefault((row.prompt, row.completion), row)
        for pair in _prefer_samples(earned, failed):
            preferences.setdefault((pair.prompt, pair.chosen, pair.rejected), pair)
    return LogRows(tuple(examples.values()), tuple(preferences.values()), questions, won)


def _find_rivals(manifest: Manifest) -> dict[str, list[str]]:
    """Find the graph memories of a run, by label, each with the plain methods of its model."""
    found = {}
    for method in manifest.methods:
        if method.memory in PLAIN:
            continue
        rivals = {
            one.memory: one.label
            for one in manifest.methods
            if one.memory in PLAIN and one.model == method.model
        }
        if len(rivals) == len(PLAIN):
            found[method.label] = [*rivals.values()]
    if not found:
        raise UsageError(
            "the run does not say which of its memories were worth their calls",
            hint=f"evaluate it beside the plain methods: --memory NAME,{','.join(PLAIN)}",
        )
    return found


def _find_replies(store: Store, calls: Calls) -> dict[str, _Reply]:
    """Find the calls whose words are in the store, and read their replies: as JSON, where they are
    held to a schema."""
    found = {}
    for key, outcomes in calls.items():
        call = store.find_call(key)
        if call is None or call.completion is None:
            continue
        whole: Any = clean(call.completion.text)
        if call.request.json_schema is not None:
            try:
                whole = json.loads(whole)
            except ValueError:
                continue
        found[key] = _Reply(call, whole, _keep_applied(whole, outcomes))
    return found


def _keep_applied(whole: Any, outcomes: Sequence[str]) -> Any | None:
    if all(outcome == "applied" for outcome in outcomes):
        return whole
    edits = whole.get(EDITS) if isinstance(whole, dict) else None
    if not isinstance(edits, list) or len(edits) != len(outcomes):
        return None
    pairs = zip(edits, outcomes, strict=True)
    return {**whole, EDITS: [edit for edit, outcome in pairs if outcome == "applied"]}


def _print(whole: Any) -> str:
    return whole if isinstance(whole, str) else print_reply(whole)


def _prefer_mended(replies: Mapping[str, _Reply], origin: RowOrigin) -> Iterator[Preference]:
    """Yield each reply without its wrong edits, and with those of the retry, before the reply."""
    retries = {
        (reply.prompt[:-2], reply.prompt[-2][1]): reply
        for reply in replies.values()
        if len(reply.prompt) > 2 and reply.prompt[-2][0] == "assistant"
    }
    for reply in replies.values():
        if reply.kept is None or not isinstance(reply.kept, dict) or EDITS not in reply.kept:
            continue
        mended = reply.kept
        lineage: tuple[str, ...] = (reply.call.key,)
        retry = retries.get((reply.prompt, reply.text))
        if retry is not None and retry.kept is not None:
            mended = {**mended, EDITS: [*mended[EDITS], *retry.kept[EDITS]]}
            lineage = (*lineage, retry.call.key)
        if mended[EDITS] and mended != reply.whole:
            yield _prefer(reply, mended, reply.whole, origin, lineage)


def _prefer_samples(
    earned: Iterable[tuple[_Reply, RowOrigin]], failed: Iterable[_Reply]
) -> Iterator[Preference]:
    """Yield replies that earned it before others to the same prompt that did not."""
    others: dict[tuple[Any, ...], list[_Reply]] = {}
    for reply in failed:
        others.setdefault((reply.prompt, reply.schema), []).append(reply)
    for better, origin in earned:
        for worse in others.get((better.prompt, better.schema), ()):
            if better.kept is not None and worse.whole not in (better.kept, better.whole):
                lineage = (better.call.key, worse.call.key)
                yield _prefer(better, better.kept, worse.whole, origin, lineage)


def _prefer(
    reply: _Reply, chosen: Any, rejected: Any, origin: RowOrigin, lineage: tuple[str, ...]
) -> Preference:
    return Preference(
        reply.prompt, _print(chosen), _print(rejected), reply.schema, *origin, lineage
    )
