"""A model at work: its engine, clients of it, and the tools that memories get.

    with Workplace(home, store, ModelChoice("smollm2-135m"), observer) as place:
        client = place.client()

Calls, token counts and vectors are kept in the home's store, so that nothing is computed twice.
Everything is made when it is first needed, and closed with the workplace.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mgl.errors import MglError, UsageError
from mgl.lab.model import ModelChoice, OwnModels
from mgl.lab.providers import ChosenModel, OwnModel, RecordedModel
from mgl.llm.client import Client
from mgl.llm.concurrency import Portal
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import MemoryKind, Tools
from mgl.models import shipped
from mgl.models.files import hold_lock
from mgl.observer import SILENT, Observer, report_fetch
from mgl.retrieval.opening import DEFAULT_EMBEDDER, DEFAULT_RERANKER, SIMILARITY
from mgl.store import Store
from mgl.store.owners import RUN, owned_by

if TYPE_CHECKING:
    from mgl.evaluation.papers.suites import Run
    from mgl.evaluation.runs.lifecycle import Replay
    from mgl.evaluation.runs.manifest import Arguments, Manifest
    from mgl.evaluation.runs.plan import RunPlan
    from mgl.evaluation.runs.retrieving import Recalls
    from mgl.evaluation.runs.runner import Execution
    from mgl.llm.base import LLM, Engine
    from mgl.llm.calls import CallLog
    from mgl.llm.capabilities import Speed
    from mgl.retrieval.base import Embedder, Reranker
    from mgl.retrieval.matching import TokenMatcher
    from mgl.retrieval.models import Source
    from mgl.retrieval.shifts import ShiftDetector
    from mgl.store.calls import Pace, StoreCallLog

DATABASE = "mgl.sqlite"

ResultT = TypeVar("ResultT")


class Workplace:
    """One model, chosen or brought, over a home's store, which it does not close.

    With ``recorded`` no model runs: the calls in the store are replayed as that model's. ``owner``
    is the evaluation run that calls of no memory belong to.
    """

    def __init__(
        self,
        home: Path,
        store: Store,
        models: ModelChoice | OwnModels,
        observer: Observer,
        *,
        recorded: ModelFacts | None = None,
    ) -> None:
        self.owner: str | None = None
        self._own = models if isinstance(models, OwnModels) else OwnModels(choice=models)
        self._choice = choice = self._own.choice
        self._home = home
        self.store = store
        self.observer = observer
        self._closing = ExitStack()
        self.model: ChosenModel | RecordedModel
        if recorded is not None:
            self.model = RecordedModel(recorded, store)
        elif self._own.engine is not None:
            given = choice, home, store, observer, lambda: self.loop
            self.model = OwnModel(*given, engine=self._own.engine)
        else:
            self.model = ChosenModel(choice, home, store, observer, lambda: self.loop)

    def __enter__(self) -> Self:
        try:  # what waits for the loop is made here, as the loop cannot wait for itself
            _ = self.model.preset
            _ = self.engine
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._closing.close()

    @cached_property
    def loop(self) -> Portal:
        """The event loop that engines live in."""
        return self._closing.enter_context(Portal())

    def run(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Run the coroutine that ``make`` returns in the engines' loop."""
        return self.loop.run(make)

    @contextmanager
    def alone(self, work: str) -> Iterator[None]:
        """Wait until no other process does this work, and keep others from it meanwhile.

        What it did is in the store then, so that doing it again costs nothing.
        """
        say = cache(self.observer.note)  # once, however often the lock is found taken
        waiting = "another process is doing the same: waiting for its result"
        with hold_lock(self.store.path.parent / "locks" / f"{work}.lock", lambda: say(waiting)):
            yield

    @property
    def preset(self) -> str:
        """The preset of memories for this model."""
        return self.model.preset

    @cached_property
    def engine(self) -> Engine:
        """The engine of the model; it starts with the first call that is not in the store."""
        engine = self.model.open_engine()
        if self._own.engine is None:
            self._closing.callback(self.loop.finish, engine.aclose)
        return engine

    @cached_property
    def facts(self) -> ModelFacts:
        """What is known of the model and its tools before anything is asked."""
        return self.model.describe(self.engine, self._reranker_name)

    def open_client(self) -> tuple[Client, StoreCallLog]:
        """Make a client and its call log, which has to be attached to the memory that pays."""
        log = self.store.call_log()
        return Client(self.engine, log, self.model.policy), log

    def own(self, document_id: str | None = None) -> AbstractContextManager[None]:
        """State that the evaluation run, if there is one, owns what is kept within for a source."""
        if self.owner is None:
            return nullcontext()
        return owned_by(self.store.own(self.owner, document_id))

    def client(self) -> Client:
        """Make a client with a usage of its own, for calls that no memory of the store owns.

        All such clients share the engine's slots. Call it in the workplace's loop.
        """
        client, log = self._shared
        return client.beside(log)

    def tools(
        self,
        llm: LLM,
        kind: MemoryKind | None = None,
        store: Store | None = None,
        observer: Observer | None = None,
    ) -> Tools:
        """Collect a memory's tools, with embedder and reranker only if ``kind`` retrieves.

        ``store`` is where the memory is kept, if not beside its calls.
        """
        retrieves = kind is not None and kind.retrieves
        return Tools(
            llm=llm,
            store=store or self.store,
            observer=observer or self.observer,
            embedder=self.embedder if retrieves else None,
            reranker=(self._own.reranker or self._reranker) if retrieves else None,
            detectors=self._open_detector,
        )

    def matcher(self, written: str) -> TokenMatcher:
        """Open the model ``MODEL[:LAYER]`` that compares texts token by token (BERTScore)."""
        from mgl.retrieval.matching import open_matcher

        return open_matcher(written, self._home, self._source, self.store)

    @cached_property
    def _shared(self) -> tuple[Client, CallLog]:
        log = self.model.open_log(self.owner)
        return Client(self.engine, log, self.model.policy), log

    @cached_property
    def embedder(self) -> Embedder:
        """The chosen embedder; it loads with the first text whose vector is not in the store."""
        if self._own.embedder is not None:
            from mgl.retrieval.embedders import CachedEmbedder

            return CachedEmbedder(self._own.embedder, self.store)
        from mgl.retrieval.opening import open_embedder

        name = self._choice.embedder or DEFAULT_EMBEDDER
        opened = open_embedder(name, self._home, source=self._source, cache=self.store)
        self._closing.callback(opened.close)
        return opened

    @property
    def _reranker_name(self) -> str:
        """The reranker: by the vectors of an embedder that a program brings itself."""
        default = DEFAULT_RERANKER if self._own.embedder is None else SIMILARITY
        return self._choice.reranker or default

    def _open_detector(self, name: str) -> ShiftDetector:
        from mgl.retrieval.shifts import open_detector

        return open_detector(name, self._home, self._source)

    @cached_property
    def _reranker(self) -> Reranker:
        from mgl.retrieval.opening import open_reranker

        name = self._reranker_name
        opened = open_reranker(name, self._home, source=self._source, embedder=self.embedder)
        self._closing.callback(self.loop.finish, opened.aclose)
        return opened

    @property
    def _source(self) -> Source:
        from mgl.retrieval.models import Source

        choice = self._choice
        return Source(
            models=choice.models, allow_hub=choice.allow_hub, progress=report_fetch(self.observer)
        )


@dataclass
class Workplaces:
    """Opens a workplace for each model of a run, all with the same options but the profile.

    ``run`` is its folder: the calls belong to it.
    """

    home: Path
    store: Store
    base: ModelChoice
    observer: Observer
    known: dict[str, ModelFacts] = field(default_factory=dict)
    run: Path | None = None

    @classmethod
    @contextmanager
    def open_home(cls, base: ModelChoice, observer: Observer) -> Iterator[Self]:
        """Open the home's store, and close it in the end."""
        home = shipped.home()
        with Store.open(home / DATABASE) as store:
            yield cls(home, store, base, observer)

    def default(self) -> str:
        """Find the profile that is used if none is named."""
        with self._choose(self.base) as model:
            return model.profile.name

    @contextmanager
    def _choose(self, choice: ModelChoice) -> Iterator[ChosenModel]:
        with Portal() as portal:
            yield ChosenModel(choice, self.home, self.store, self.observer, lambda: portal)

    def pace(self, profile: str, stage: str) -> Pace | None:
        """The pace of a model's calls of one stage on this machine, as far as it is known."""
        try:
            with self.open(profile) as place:
                return self.store.pace(place.facts.model_id, stage)
        except MglError:
            return None

    def find_speed(self, profile: str, *, measure: bool) -> Speed | None:
        """Find the speed of a model's vLLM server, measured now if it is unknown and ``measure``.

        None without such a server, and where it is unknown.
        """
        from mgl.serving.speed import find_speed

        try:
            with self._choose(self.choice(profile)) as model:
                choice, names = model.resolved, model.profile.served_names
                if choice.base_url is None:
                    return None
                url, key, note = choice.base_url, choice.api_key, self.observer.note
                return model.open_loop().run(
                    lambda: find_speed(url, key, names, self.home, note, measure=measure)
                )
        except MglError as error:
            if measure:
                self.observer.note(f"the speed of {profile} is unknown: {error.message}")
            return None

    def take(self, models: Mapping[str, ModelFacts]) -> None:
        """Open these models with the engine, embedder, reranker and context of an earlier run.

        UsageError if another embedder or reranker is chosen now.
        """
        for facts in models.values():
            for own, theirs in (
                (self.base.embedder, facts.embedder),
                (self.base.reranker, facts.reranker),
            ):
                if own not in (None, theirs):
                    raise UsageError(
                        f"the run was started with {theirs}, and {own} is chosen now",
                        hint="leave out --embedder and --reranker, or start a new run with --out",
                    )
        self.known.update(models)

    def choice(self, profile: str) -> ModelChoice:
        """Complete the choice of one model by its profile, and what an earlier run had."""
        own = replace(self.base, profile=profile)
        known = self.known.get(profile)
        if known is None:
            return own
        in_process = known.engine in ("openvino", "transformers")
        return replace(
            own,
            engine=own.engine or (known.engine if in_process else None),
            embedder=known.embedder,
            reranker=known.reranker,
            adapter=own.adapter or known.adapter,
            context_tokens=known.context_tokens,
        )

    def open(self, profile: str) -> Workplace:
        """Open the workplace of a model, which starts with its first call."""
        place = Workplace(self.home, self.store, self.choice(profile), self.observer)
        place.owner = None if self.run is None else f"{RUN}{self.run.absolute()}"
        return place

    def start(self, plan: RunPlan, folder: Path, execution: Execution) -> Manifest:
        """Start a run, whose calls belong to its folder (``start_run``)."""
        from mgl.evaluation.runs.lifecycle import start_run

        self.run = folder
        return start_run(plan, folder, replace(execution, open_model=self.open))

    def resume(self, folder: Path, data: Path | None, execution: Execution) -> Manifest:
        """Do what is left of a run, with the models it began with (``resume_run``)."""
        from mgl.evaluation.runs.lifecycle import resume_run
        from mgl.evaluation.runs.manifest import Manifest
        from mgl.evaluation.runs.plan import reopen_plan

        self.run, manifest = folder, Manifest.read(folder)
        self.take(manifest.models)
        plan = reopen_plan(manifest, self.open, data)
        return resume_run(plan, folder, replace(execution, open_model=self.open))

    def replay(self, folder: Path, data: Path | None) -> Replay:
        """Make a run again from the calls in the store, and compare (``replay_run``)."""
        from mgl.evaluation.runs.lifecycle import replay_run
        from mgl.evaluation.runs.manifest import Manifest
        from mgl.evaluation.runs.plan import reopen_plan
        from mgl.evaluation.runs.runner import Execution

        manifest = Manifest.read(folder)
        open_recorded = self.open_recorded(manifest.models)
        plan = reopen_plan(manifest, open_recorded, data)
        return replay_run(plan, folder, Execution(open_recorded, self.observer))

    def reproduce(self, run: Run, arguments: Arguments, folder: Path, execution: Execution) -> None:
        """Start or continue a run of a paper's table, with its embedder and reranker unless others
        are chosen; UsageError if the folder holds another run."""
        from mgl.evaluation.runs.manifest import MANIFEST, Manifest
        from mgl.evaluation.runs.plan import plan_run

        own = self.base
        base = replace(
            own, embedder=own.embedder or run.embedder, reranker=own.reranker or run.reranker
        )
        places = replace(self, base=base, known={})
        if not (folder / MANIFEST).exists():
            places.start(plan_run(arguments, places.open), folder, execution)
            return
        moved = {"data": arguments.data}
        if Manifest.read(folder).arguments.model_copy(update=moved) != arguments:
            raise UsageError(
                f"{folder} holds a run with other arguments",
                hint="choose another folder with --out",
            )
        places.resume(folder, arguments.data, execution)

    def retrieve(self, arguments: Arguments, note: Callable[[str], None]) -> Recalls:
        """Measure which evidence memories return, without a model; ``note`` hears of leaks.

        UsageError for a benchmark that names no evidence, for a memory that asks a model, and for
        an adapter that learnt from what is asked.
        """
        from mgl import registry
        from mgl.evaluation.runs.plan import check_leaks, find_adapters, list_methods, take_items
        from mgl.evaluation.runs.retrieving import RETRIEVING, retrieve_evidence
        from mgl.memories.options import read_settings

        benchmark = registry.load("benchmark", arguments.benchmark)
        if arguments.data is None:
            raise UsageError(f"{benchmark.name} names no evidence", hint="take locomo")
        memories = arguments.memories or RETRIEVING
        methods = list_methods(memories, read_settings(arguments.settings), {"none": "small"})
        dataset = benchmark.read(arguments.data)
        items = take_items(arguments, dataset)
        embedder = self.base.embedder or DEFAULT_EMBEDDER
        used = find_adapters({embedder, self.base.reranker}, methods, self.home)
        for leak in check_leaks(used, items, dataset, allow=arguments.allow_leak):
            note(f"note: {leak}")
        choice = replace(self.base, embedder=embedder)
        with closing(Workplace(self.home, self.store, choice, self.observer)) as place:
            return place.run(
                lambda: retrieve_evidence(
                    methods,
                    items,
                    dataset,
                    lambda llm, kind, store: place.tools(llm, kind, store, SILENT),
                    self.observer,
                )
            )

    def open_recorded(self, models: Mapping[str, ModelFacts]) -> Callable[[str], Workplace]:
        """Return a function that opens workplaces which replay these models from the store."""

        def replay(profile: str) -> Workplace:
            facts = models[profile]
            choice = ModelChoice(
                models=self.base.models, embedder=facts.embedder, reranker=facts.reranker
            )
            return Workplace(self.home, self.store, choice, self.observer, recorded=facts)

        return replay
