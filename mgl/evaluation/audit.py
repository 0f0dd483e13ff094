"""Everything behind one answer of a run: what was read for it, and each call with its prompt.

    >>> auditor = Auditor(manifest, log, store)                              # doctest: +SKIP
    >>> auditor.audit(log.answers["gam", "conv-26/q4", 0]).calls[-1].reply   # doctest: +SKIP
    'Rome'

A record has the keys of its calls; prompts and replies are in the store that the run was made over,
or in the run's folder if it was packed. Texts of sources are read from the benchmark's files if
they are still where the run found them, or in MGL_DATA, with the same hashes; else an audit has
their ids alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Final, Literal

from mgl import registry
from mgl.benchmarks.base import Dataset
from mgl.benchmarks.files import find_data
from mgl.errors import MglError
from mgl.evaluation.records import BuildRecord, Record, RunLog
from mgl.evaluation.runs.manifest import Manifest
from mgl.llm.base import ToolCall
from mgl.llm.calls import CallRecord, RecordedRun
from mgl.text.groups import format_turn
from mgl.types import Conversation, Document, Span

RIGHT: Final = 0.5
"""An answer counts as right from this score of 1 on."""

LENGTH: Final = 600
"""How many characters of a passage are given."""

Verdict = Literal["right", "wrong", "unsure", "failed"]


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage or a turn by its id, with its text as a model reads it (a turn with its day). The
    text is empty if it is not at hand; ``is_evidence`` says whether the benchmark names it."""

    id: str
    text: str
    is_evidence: bool


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call by its key; ``record`` is None if the store has no such call. ``edits`` are the
    outcomes of the edits that it proposed."""

    key: str
    record: CallRecord | None
    edits: tuple[str, ...] = ()

    @property
    def reply(self) -> str:
        """What the model wrote, or why it gave no reply."""
        if self.record is None:
            return ""
        done = self.record.completion
        if done is None:
            return self.record.error or self.record.outcome
        return _join(done.text, done.tool_calls)

    @property
    def said(self) -> list[tuple[str, str]]:
        """The messages of the prompt by their roles, what constrained the reply, and the reply."""
        if self.record is None:
            return []
        request = self.record.request
        parts: list[tuple[str, str]] = [
            (message.role, _join(message.content, message.tool_calls))
            for message in request.messages
        ]
        if request.tools:
            parts.append(("tools", ", ".join(tool.name for tool in request.tools)))
        if request.json_schema is not None:
            schema = json.dumps(dict(request.json_schema), ensure_ascii=False)
            parts.append(("schema", schema))
        if request.choices:
            parts.append(("choices", " / ".join(request.choices)))
        return [*parts, ("reply", self.reply)]

    @property
    def about(self) -> str:
        """Its stage, model, outcome, tokens, seconds, sampling, and what became of its edits."""
        if self.record is None:
            return "not in the log of calls"
        call, done = self.record, self.record.completion
        parts = [call.stage or "no stage", call.model_id, call.outcome]
        if done is not None:
            parts.append(f"{done.usage.input_tokens:,} tokens in, {done.usage.output_tokens:,} out")
        sampling = call.request.sampling
        parts.append(f"{call.seconds:.1f} s")
        parts.append(f"temperature {sampling.temperature:g}, seed {sampling.seed}")
        if self.edits:
            counts = Counter(self.edits).items()
            parts.append(f"edits: {', '.join(f'{n} {kind}' for kind, n in counts)}")
        return " · ".join(parts)


def _join(text: str, calls: Iterable[ToolCall]) -> str:
    """Write what was said, then the tools that it calls, a line each."""
    tools = [f"{one.name}({one.arguments})" for one in calls]
    return "\n".join([text, *tools] if text else tools)


@dataclass(frozen=True)
class Audit:
    """An answer with its ``verdict`` by the headline, the ``evidence`` that the benchmark names,
    what was ``retrieved``, its ``calls``, and those of each judge by the key of its verdict.

    ``build`` is the record of a memory that items share, and ``building`` its calls. Without one
    the memory was built for this answer: ``building`` are those of the answer's own calls whose
    edits are its log."""

    record: Record
    verdict: Verdict
    evidence: tuple[ShownPassage, ...]
    retrieved: tuple[ShownPassage, ...]
    calls: tuple[LoggedCall, ...]
    judging: Mapping[str, tuple[LoggedCall, ...]]
    build: BuildRecord | None
    building: tuple[LoggedCall, ...]


def judge_answer(record: Record, headline: str) -> Verdict:
    """Say what the headline makes of an answer: ``unsure`` if it lacks the score."""
    value = record.value(headline)
    if record.failed:
        return "failed"
    return "unsure" if value is None else "right" if value >= RIGHT else "wrong"


def read_dataset(benchmark: str, place: Path) -> Dataset:
    """Read the files of a benchmark by its name."""
    dataset: Dataset = registry.load("benchmark", benchmark).read(place)
    return dataset


class Auditor:
    """Collects what is behind the answers of a run. ``store`` has its calls; without one they are
    named by their keys alone. Auditors of several runs may share a ``read`` that keeps what it
    read."""

    def __init__(
        self,
        manifest: Manifest,
        log: RunLog,
        store: RecordedRun | None,
        read: Callable[[str, Path], Dataset] = read_dataset,
    ) -> None:
        self._manifest, self._log, self._store, self._read = manifest, log, store, read
        self._open = lru_cache(maxsize=1)(self._open_texts)

    def audit(self, record: Record) -> Audit:
        """Collect what is behind an answer. Auditing the answers of one source in a row is faster,
        since its text is read once."""
        item, build = record.item, self._log.find_build(record)
        find_text = self._open(item["source"])
        own = record.took.get("keys", ())
        built = record.calls if build is None else build.took.get("keys", build.calls)
        edits = record.calls if build is None else build.calls
        return Audit(
            record,
            judge_answer(record, self._manifest.headline),
            _show_passages(item["evidence"], item["evidence"], find_text),
            _show_passages(record.retrieved, item["evidence"], find_text),
            tuple(self._find(key) for key in own if build is not None or key not in built),
            {
                judge: tuple(map(self._find, verdict.took.get("keys", ())))
                for judge, verdict in record.verdicts.items()
            },
            build,
            tuple(self._find(key, edits.get(key, ())) for key in built),
        )

    def _find(self, key: str, edits: tuple[str, ...] = ()) -> LoggedCall:
        found = None
        if self._store is not None:
            found = self._store.find_call(key) or self._store.find_failure(key)
        return LoggedCall(key, found, edits)

    def _open_texts(self, name: str) -> Callable[[str], str]:
        """Read a source, and return what gives the text of a turn or passage by its id: empty if
        it is not at hand."""
        try:
            source = None if self._dataset is None else self._dataset.sources[name]()
        except (KeyError, MglError):
            source = None
        if source is None:
            return lambda _: ""
        if isinstance(source, Conversation):
            turns = {turn.id: turn for turn in source.turns}
            return lambda id: format_turn(turns[id]) if id in turns else ""
        return partial(_quote, source)

    @cached_property
    def _dataset(self) -> Dataset | None:
        """The benchmark's files, if they are here and are those of the run."""
        arguments, facts = self._manifest.arguments, self._manifest.dataset
        try:
            place = arguments.data
            if place is None or not place.exists():
                place = find_data(registry.load("benchmark", arguments.benchmark).about)
            dataset = None if place is None else self._read(arguments.benchmark, place)
        except MglError:
            return None
        is_same = dataset is not None and dict(dataset.sha256) == dict(facts.sha256)
        return dataset if is_same else None


def _quote(document: Document, place: str) -> str:
    try:
        return document.quote(Span.at(document.id, place))
    except (ValueError, MglError):
        return ""


def _show_passages(
    ids: Iterable[str], evidence: Iterable[str], find_text: Callable[[str], str]
) -> tuple[ShownPassage, ...]:
    """Give each id its text; a turn is evidence, too, where its session is named."""
    gold = {*evidence}
    return tuple(
        ShownPassage(id, find_text(id)[:LENGTH], id in gold or id.partition(":")[0] in gold)
        for id in ids
    )
