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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal

from mgl import registry
from mgl.benchmarks.base import Dataset
from mgl.benchmarks.files import find_data
from mgl.errors import MglError
from mgl.evaluation.records import BuildRecord, Record, RunLog
from mgl.evaluation.runs.manifest import Manifest
from mgl.llm.calls import CallRecord, RecordedRun
from mgl.text.groups import format_turn
from mgl.types import Conversation, Source, Span

RIGHT: Final = 0.5
"""An answer counts as right from this score of 1 on."""

LENGTH: Final = 600
"""How many characters of a passage are given."""

Verdict = Literal["right", "wrong", "unsure", "failed"]


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage or a turn by its id, with its text as a model reads it (a turn with its day), empty
    if it is not at hand; ``is_evidence`` says whether the benchmark names it."""

    id: str
    text: str
    is_evidence: bool


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call by its key; ``record`` is None if the store has no such call. ``edits`` are what
    became of the edits that it proposed."""

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
        tools = [f"{one.name}({one.arguments})" for one in done.tool_calls]
        return "\n".join([done.text] * bool(done.text) + tools)

    @property
    def said(self) -> list[tuple[str, str]]:
        """The messages of the prompt by their roles, what constrained the reply, and the reply."""
        if self.record is None:
            return []
        request = self.record.request
        parts: list[tuple[str, str]] = []
        for message in request.messages:
            tools = [f"{one.name}({one.arguments})" for one in message.tool_calls]
            parts.append(
                (message.role, "\n".join([message.content] * bool(message.content) + tools))
            )
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
            parts += [f"{done.usage.input_tokens:,} tokens in, {done.usage.output_tokens:,} out"]
        sampling = call.request.sampling
        parts += [f"{call.seconds:.1f} s"]
        parts += [f"temperature {sampling.temperature:g}, seed {sampling.seed}"]
        parts += [f"edits: {', '.join(f'{n} {kind}' for kind, n in Counter(self.edits).items())}"
                  ] * bool(self.edits)  # fmt: skip
        return " · ".join(parts)


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


class Auditor:
    """Collects what is behind the answers of a run. ``store`` has its calls; without one they are
    named by their keys alone."""

    def __init__(self, manifest: Manifest, log: RunLog, store: RecordedRun | None) -> None:
        self._manifest, self._log, self._store = manifest, log, store
        self._open = lru_cache(maxsize=1)(self._read_source)

    def audit(self, record: Record) -> Audit:
        """Collect what is behind an answer. Those of one source after each other are faster."""
        source = self._open(record.item["source"])
        gold, build = set(record.item["evidence"]), self._log.find_build(record)
        own = record.took.get("keys", ())
        built = record.calls if build is None else build.took.get("keys", build.calls)
        edits = record.calls if build is None else build.calls
        return Audit(
            record,
            judge_answer(record, self._manifest.headline),
            tuple(_quote(source, record.item["evidence"], gold)),
            tuple(_quote(source, record.retrieved, gold)),
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

    def _read_source(self, name: str) -> Source | None:
        try:
            return None if self._dataset is None else self._dataset.sources[name]()
        except (KeyError, MglError):
            return None

    @cached_property
    def _dataset(self) -> Dataset | None:
        """The benchmark's files, if they are here and are those of the run."""
        arguments, facts = self._manifest.arguments, self._manifest.dataset
        try:
            benchmark = registry.load("benchmark", arguments.benchmark)
            place = arguments.data
            if place is None or not place.exists():
                place = find_data(benchmark.about)
            dataset: Dataset | None = None if place is None else benchmark.read(place)
        except MglError:
            return None
        is_same = dataset is not None and dict(dataset.sha256) == dict(facts.sha256)
        return dataset if is_same else None


def _quote(
    source: Source | None, ids: Iterable[str], gold: Collection[str]
) -> Iterable[ShownPassage]:
    """Each id with its text; a turn is evidence, too, where its session is named."""
    lines = {}
    if isinstance(source, Conversation):
        lines = {turn.id: format_turn(turn) for turn in source.turns}
    for id in ids:
        text = lines.get(id, "")
        if source is not None and not isinstance(source, Conversation):
            try:
                text = source.quote(Span.at(source.id, id))
            except (ValueError, MglError):
                text = ""
        yield ShownPassage(id, text[:LENGTH], id in gold or id.partition(":")[0] in gold)
