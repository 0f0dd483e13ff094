"""A benchmark, an engine and runs of them that cost nothing.

The documents tell the capitals of countries, and the engine knows what is told in its prompt. What
is asked of some countries goes wrong in the engine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from mgl.benchmarks.base import About, Dataset, Item
from mgl.errors import EngineRejected, EngineTimeout, EngineUnavailable, EngineUnusable, InputError
from mgl.evaluation.records import RunLog
from mgl.evaluation.runs.due import list_keys
from mgl.evaluation.runs.lifecycle import Replay, replay_run, resume_run, start_run
from mgl.evaluation.runs.manifest import Arguments, Manifest
from mgl.evaluation.runs.plan import RunPlan, plan_run, reopen_plan
from mgl.evaluation.runs.runner import Execution
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import Workplace
from mgl.llm.base import Completion, Engine, Request, TokenUsage
from mgl.llm.engines.deferred import DeferredEngine
from mgl.llm.engines.recorded import ModelFacts
from mgl.llm.fakes import SchemaEngine
from mgl.observer import Observer, SilentObserver
from mgl.retrieval.opening import DEFAULT_EMBEDDER, DEFAULT_RERANKER
from mgl.store import Store
from mgl.text.chunks import Counter
from mgl.types import Conversation, Document, Question, Source, Turn

CAPITAL = re.compile(r"capital of (\w+) is (\w+)")
ASKED = re.compile(r"What is the capital of (\w+)\?")
SLOW, REFUSED, GONE, LOCKED = "Slowland", "Rudeland", "Goneland", "Lockland"
MUTE = "Muteland"
MODEL, OTHER = "smollm2-135m", "qwen2.5-coder-0.5b"
PLACES = {
    "north": ["Asgard", "Thule", "Hyperborea"],
    "south": ["Lemuria", "Mu", "Aiaia"],
    "west": ["Atlantis", "Avalon", "Hesperia"],
}
FEW = {"north": ["Asgard", "Thule"], "south": ["Lemuria", "Mu"]}


def capital(country: str) -> str:
    return f"{country}polis"


@dataclass(frozen=True)
class Tiny:
    """A benchmark of one JSON file: {"sources": {name: [countries]}, "items": […]}.

    If it is ``told_by_turns`` a question on a country is asked after the turn that tells it.
    """

    reads: Literal["document", "conversation"] = "document"
    scorers: tuple[str, ...] = ("exact_match",)
    judge: str | None = "strict"
    name: str = "tiny"
    told_by_turns: bool = False
    about: ClassVar[About] = About("Tiny", "ours", "made in a test", "none", "tiny.json", 9, "tiny")

    def read(self, path: Path) -> Dataset:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}", hint="name the file") from error
        value = json.loads(data)
        items = tuple(
            Item(
                id=one["id"],
                source=one["source"],
                question=Question(f"What is the capital of {one['country']}?"),
                golds=tuple(one["golds"]),
                category=one["category"],
                after=f"D{value['sources'][one['source']].index(one['country'])}"
                if self.told_by_turns
                else "",
            )
            for one in value["items"]
        )
        sources = {
            name: partial(self._source, name, told) for name, told in value["sources"].items()
        }
        return Dataset(items, sources, {path.name: hashlib.sha256(data).hexdigest()})

    def _source(self, name: str, countries: Sequence[str]) -> Source:
        told = [f"The capital of {one} is {capital(one)}." for one in countries]
        if self.reads == "document":
            return Document.from_text(name, "\n\n".join(told))
        turns = [Turn(f"D{n}", "Ann", line) for n, line in enumerate(told)]
        return Conversation.from_turns(name, turns)


TINY = Tiny()
CHATS = Tiny(reads="conversation", name="chats")
GROWING = Tiny(reads="conversation", name="growing", told_by_turns=True)
STRANGE = Tiny(scorers=("f1_nobody_knows",), name="strange")
UNJUDGED = Tiny(judge=None, name="unjudged")
PLUGIN = "from tests.evaluation.trial import CHATS, GROWING, MADE, STRANGE, TINY, UNJUDGED\n"


class MadeConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    countries: int = Field(2, ge=1)
    seed: int = 0


@dataclass(frozen=True)
class Made(Tiny):
    """As many countries as are asked for, each with its tokens in its name."""

    Config: ClassVar = MadeConfig

    async def generate(self, config: MadeConfig, count: Counter) -> Dataset:
        names = [f"Land{config.seed + n}" for n in range(config.countries)]
        tokens = await count(names)
        items = tuple(
            Item(name, "all", Question(f"What is the capital of {name}?"), (capital(name),))
            for name in names
        )
        digest = hashlib.sha256(f"{names} {tokens}".encode()).hexdigest()
        return Dataset(items, {"all": partial(self._source, "all", names)}, {"made": digest})


MADE = Made(name="made")


def write_data(path: Path, places: Mapping[str, Sequence[str]] = PLACES) -> Path:
    """The benchmark's file: a question on each country; a country in "none" has no gold."""
    items = [
        {
            "id": f"{name}/{country}",
            "source": name,
            "country": country,
            "golds": [] if name == "none" else [capital(country)],
            "category": "even" if number % 2 == 0 else "odd",
        }
        for name, countries in places.items()
        for number, country in enumerate(countries)
    ]
    path.write_text(json.dumps({"sources": places, "items": items}))
    return path


def write_plugin(folder: Path) -> Path:
    """A folder for sys.path with a distribution that registers the benchmarks."""
    info = folder / "tinybench-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "tinybench.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tinybench\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mgl.benchmarks]\ntiny = tinybench:TINY\nchats = tinybench:CHATS\n"
        "growing = tinybench:GROWING\n"
        "strange = tinybench:STRANGE\nunjudged = tinybench:UNJUDGED\n"
        "made = tinybench:MADE\n"
    )
    return folder


class Knowing(SchemaEngine):
    """Answers from what its prompt tells; counts what it is asked, and begins each with ``heard``.

    ``mends`` are the countries of which it has learnt to speak.
    """

    def __init__(self, model_id: str, heard: Callable[[], None] = lambda: None) -> None:
        super().__init__(model_id=model_id)
        self.calls = 0
        self.mends: set[str] = set()
        self._heard = heard

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        self._heard()
        await asyncio.sleep(0)
        prompt = request.messages[-1].content
        asked = ASKED.findall(prompt)
        self._fail(set(asked) - self.mends)
        if MUTE in set(asked) - self.mends:
            return Completion("", "stop", TokenUsage(1, 0))
        done = await super().generate(request)
        if request.json_schema is not None or request.choices or not asked:
            return done
        told = dict(CAPITAL.findall(prompt))
        tokens = TokenUsage(done.usage.input_tokens, 1)
        return Completion(told.get(asked[-1], "Nobody knows."), "stop", tokens)

    def _fail(self, asked: set[str]) -> None:
        if SLOW in asked:
            raise EngineTimeout("no answer within 1 s", hint="wait")
        if REFUSED in asked:
            raise EngineRejected("the server is rude", hint="be kind")
        if GONE in asked:
            raise EngineUnavailable("the server has gone", hint="start it")
        if LOCKED in asked:
            raise EngineUnusable("the server refuses the key (401)", hint="start it")


@dataclass
class Trial:
    """Runs over one home folder; ``engines`` are those that were started, by profile."""

    home: Path
    data: Path
    heard: Callable[[], None] = lambda: None
    observer: Observer = field(default_factory=SilentObserver)
    mends: set[str] = field(default_factory=set)
    engines: dict[str, Knowing] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return sum(engine.calls for engine in self.engines.values())

    @contextmanager
    def open(self, profile: str) -> Iterator[Workplace]:
        with Store.open(self.home / "mgl.sqlite") as store:
            choice = ModelChoice(profile=profile)
            place = Workplace(self.home, store, choice, self.observer)
            engine = Knowing(f"fake/{profile}", self.heard)
            engine.mends = self.mends

            async def start() -> Engine:
                return self.engines.setdefault(profile, engine)

            place.__dict__["facts"] = self.facts(profile)
            place.__dict__["engine"] = DeferredEngine(
                start,
                store,
                model_id=engine.model_id,
                context_tokens=engine.context_tokens,
                native_tools=False,
                concurrency=8,
            )
            with place:
                yield place

    @contextmanager
    def recorded(self, profile: str, store: Store | None = None) -> Iterator[Workplace]:
        facts = self.facts(profile)
        choice = ModelChoice(embedder=facts.embedder, reranker=facts.reranker)
        with (
            Store.open(self.home / "mgl.sqlite") if store is None else nullcontext(store) as own,
            Workplace(self.home, own, choice, self.observer, recorded=facts) as place,
        ):
            yield place

    def facts(self, profile: str) -> ModelFacts:
        return ModelFacts(
            profile=profile,
            model_id=f"fake/{profile}",
            engine="openvino",
            context_tokens=32_768,
            native_tools=False,
            concurrency=8,
            preset="paper",
            weights_sha256=None,
            sampling={"temperature": 0.0},
            embedder=DEFAULT_EMBEDDER,
            reranker=DEFAULT_RERANKER,
        )

    def plan(self, **arguments: Any) -> RunPlan:
        given = {"benchmark": "tiny", "data": self.data, **arguments}
        given = {"memories": ("direct",), "models": (MODEL,), **given}
        return plan_run(Arguments(**given), self.open)

    def run(self, out: Path, concurrency: int = 4, **arguments: Any) -> Path:
        execution = Execution(self.open, self.observer, concurrency)
        start_run(self.plan(**arguments), out, execution)
        return out

    def resume(self, out: Path, *, retry_failed: bool = False) -> Manifest:
        plan = reopen_plan(Manifest.read(out), self.open)
        execution = Execution(self.open, self.observer, concurrency=4, retry=retry_failed)
        return resume_run(plan, out, execution)

    def replay(self, out: Path, concurrency: int = 4, store: Store | None = None) -> Replay:
        recorded = partial(self.recorded, store=store)
        plan = reopen_plan(Manifest.read(out), recorded)
        return replay_run(plan, out, Execution(recorded, self.observer, concurrency))


def result(out: Path) -> dict[str, bytes]:
    """What a run gives, by name, whatever the order in which it came."""
    return RunLog(out / "records.jsonl").lines()


def rows(out: Path) -> list[dict[str, Any]]:
    """The answers of a run in the order of methods and items."""
    log, manifest = RunLog(out / "records.jsonl"), Manifest.read(out)
    found = [log.answers[key] for key in list_keys(manifest) if key in log.answers]
    return [json.loads(json.dumps({**asdict(one), "outcome": one.outcome})) for one in found]


def builds(out: Path) -> list[dict[str, Any]]:
    log = RunLog(out / "records.jsonl")
    return sorted(map(asdict, log.builds.values()), key=lambda one: (one["method"], one["source"]))


@pytest.fixture
def plugin(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The benchmarks are registered, as those of an installed distribution."""
    folder = tmp_path_factory.getbasetemp() / "plugin"
    if not folder.exists():
        write_plugin(folder)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def trial(tmp_path: Path, mgl_home: Path) -> Trial:
    return Trial(mgl_home, write_data(tmp_path / "tiny.json"))


SMALL = ("chunk_tokens=16",)
