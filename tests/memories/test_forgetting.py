"""What deletion must hold for every kind of memory, over one conversation and one real file."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.baselines.naive_rag import NaiveRag, NaiveRagConfig
from mgl.baselines.sliding_summary import SlidingSummary, SlidingSummaryConfig
from mgl.lab.talk import AnswerKeeper
from mgl.llm.base import Completion, Engine, Request, TokenUsage
from mgl.llm.client import Client
from mgl.memories.base import Tools
from mgl.memories.gam import Gam, GamConfig
from mgl.memories.mnemis import Mnemis
from mgl.memories.talk import Change, to_plain
from mgl.observer import SILENT
from mgl.prompt import words_of
from mgl.retrieval.embedders import CachedEmbedder
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation, Question, Turn
from tests.memories.gam.test_forgetting import check as check_gam
from tests.memories.gam.test_memory import always, reply_by_stage
from tests.memories.mnemis.engine import choose
from tests.memories.mnemis.test_forgetting import Reader
from tests.memories.mnemis.test_forgetting import check as check_mnemis

DAY = datetime(2023, 5, 8, 9)
PLACES = ("Rome", "Detroit", "Lisbon", "Osaka", "Quito")
TALK = Conversation.from_name("talk")
DEFAULT = {"hierarchy": "incremental"}
OPTIONS = st.fixed_dictionaries(
    {
        "extraction": st.sampled_from(["terms", "model"]),
        "hierarchy": st.sampled_from(["rebuild", "incremental"]),
        "compression": st.sampled_from([2, 3]),
    }
)


class Quoting(Reader):
    """A model for every kind of memory, whose replies quote what it is shown wherever they may."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        prompt, schema = request.messages[-1].content, json.dumps(request.json_schema)
        if '"notes"' in schema:
            return _say({"notes": " ".join(prompt.split()[-120:])})
        if "time_sensitive" in schema or '"yes"' in schema:
            return _say({"time_sensitive": False})
        try:
            return Completion(_GAM(request), "stop", TokenUsage(1, 1))
        except AssertionError:
            return await super().generate(request)


_GAM = reply_by_stage(always([1]))


def _say(reply: object) -> Completion:
    return Completion(json.dumps(reply), "stop", TokenUsage(1, 1))


def memories(
    store: Store, engine: Engine, options: Mapping[str, object] = DEFAULT
) -> tuple[Gam, Mnemis, SlidingSummary, NaiveRag]:
    llm = Client(engine, store.call_log())
    tools = Tools(llm, store, SILENT, CachedEmbedder(WordEmbedder(64), store), WordReranker())
    gam = GamConfig(partition="session", indicators="rules")
    kind, mnemis = choose(options, "model")
    talk = Conversation(TALK.id, TALK.name, tuple(store.turns(TALK.id)))
    return (
        Gam(tools, talk, (), gam),
        kind(tools, talk, (), mnemis),
        SlidingSummary(tools, talk, (), SlidingSummaryConfig(chunk_tokens=60, summary_tokens=60)),
        NaiveRag(tools, talk, (), NaiveRagConfig(chunk_tokens=60, overlap_tokens=20)),
    )


def find_words(path: Path, words: Iterable[str]) -> set[str]:
    """Those words that the files have anywhere in their bytes, or a row of any table has."""
    files = [file.read_bytes().lower() for file in path.parent.glob(f"{path.name}*")]
    found = {word for word in words if any(word.encode() in file for file in files)}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        for (table,) in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            for row in reader.execute(f"SELECT * FROM {table}").fetchall():
                texts = (each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each)
                         for each in row)  # fmt: skip
                found |= {word for text in texts for word in words_of(text)} & set(words)
    return found


def check(store: Store, gone: set[str], options: Mapping[str, object]) -> None:
    """Nothing has a deleted word, and what a fresh process loads is whole."""
    assert find_words(store.path, gone) == set()
    engine = Quoting()
    gam, mnemis, *_ = memories(store, engine, options)
    if store.find_memory(gam.id) is not None:
        check_gam(gam, store, ordered=False)
        check_labels(gam, gone)
    if store.find_memory(mnemis.id) is not None:
        check_mnemis(mnemis, store)
        check_labels(mnemis, gone)
    assert engine.calls == 0


def check_labels(memory: Gam | Mnemis, gone: set[str]) -> None:
    """Every node has a label to be known by, without a deleted word."""
    labels = [node.label for node in memory.view().nodes]
    assert all(label.strip() for label in labels)
    assert gone.isdisjoint(word for label in labels for word in words_of(label))


def names_of(memory: Mnemis) -> set[str]:
    return {name for entity in memory.state.entities.values() for name in entity.names}


def say(number: int, draw: random.Random) -> tuple[Turn, str]:
    """A turn with a word of its own."""
    own = "q" + "".join(draw.choices("bcdfghjklmnp", k=8))
    one, two = draw.sample(PLACES, 2)
    text = f"I saw {own.title()} in {one}. Then {own.title()} and {two} were far."
    time = DAY + timedelta(days=number // 3)
    return Turn(f"{number}", draw.choice(["Ann", "Bo"]), text, time, f"{number // 3}"), own


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 100_000), options=OPTIONS)
async def test_no_word_of_a_deleted_turn_is_left_and_what_is_left_is_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, options: dict[str, object]
) -> None:
    draw = random.Random(seed)
    own: dict[str, str] = {}
    gone: set[str] = set()
    with Store.open(tmp_path_factory.mktemp("forgetting") / "mgl.sqlite") as store:
        engine = Quoting()
        gam, mnemis, *_ = kinds = memories(store, engine, options)
        for _ in range(draw.randint(5, 14)):
            there = [turn for turn, word in own.items() if word not in gone]
            match draw.choice("aaaaabfqkm"):
                case "f" if there:
                    turns = draw.sample(there, draw.randint(1, min(3, len(there))))
                    gone |= {own[turn] for turn in turns}
                    await draw.choice([gam, mnemis]).forget(turns)
                    check(store, gone, options)
                case "m":
                    for memory, names in (
                        (gam, [*gam.state.topics]),
                        (mnemis, [*mnemis.state.entities]),
                    ):
                        if len(names) > 1:
                            one, other = draw.sample(names, 2)
                            await memory.edit(one, Change(merge=other))
                    check(store, gone, options)
                case "b":
                    await draw.choice(kinds).build()
                case "k":  # another process comes, and sees what is there
                    gam, mnemis, *_ = kinds = memories(store, engine, options)
                case "q" if there:
                    memory = draw.choice(kinds)
                    await memory.build()
                    keep = AnswerKeeper(store, TALK.id)
                    asked = Question(f"What of {own[draw.choice(there)].title()}?")
                    with keep.watch():
                        answer = await memory.answer(asked)
                    assert keep.put(memory.id, answer)
                case _:
                    turn, own[turn.id] = say(len(own), draw)
                    await draw.choice([gam, mnemis]).append(turn)
        there = [turn for turn, word in own.items() if word not in gone]
        if not there:
            return
        gam, mnemis, *_ = kinds = memories(store, engine, options)
        for memory in kinds:
            await memory.build()
        check(store, gone, options)
        assert gam.state.stale == mnemis.state.stale == frozenset()
        numbers = {gam.conversation.turns[n].id: n for n in range(len(own))}
        left = sorted(numbers[turn] for turn in there)
        held = [n for topic in gam.state.topics.values() for n in topic.turns]
        assert sorted([*held, *gam.state.buffer]) == left
        told = [n for episode in mnemis.state.episodes.values() for n in episode.turns]
        assert sorted(told) == left
        last = draw.choice(there)
        for memory in (gam, mnemis):
            answer = await memory.answer(Question(f"What of {own[last].title()}?"))
            assert last in answer.retrieved
        calls = engine.calls
        for memory in memories(store, engine, options):
            await memory.build()
        assert engine.calls == calls  # nothing is done twice
        kept = [turn for turn in mnemis.conversation.turns if turn.id in there]
        fresh = type(mnemis)(
            mnemis._tools, Conversation.from_turns("fresh", kept), (), mnemis._config
        )
        await fresh.build()
        found, known = names_of(fresh), names_of(mnemis)
        assert found <= known
        said_once = {name for name in known - found if sum(name in t.line for t in kept) == 1}
        assert known - found <= (said_once if options["extraction"] == "terms" else set())


async def test_a_dry_run_says_what_goes_and_how_many_calls_it_takes(tmp_path: Path) -> None:
    draw = random.Random(1)
    with Store.open(tmp_path / "mgl.sqlite") as store:
        engine = Quoting()
        gam = memories(store, engine)[0]
        for number in range(7):
            await gam.append(say(number, draw)[0])
        await gam.build()
        before = gam.state
        planned = await gam.forget(["1"], dry_run=True)
        assert gam.state == before
        assert planned == await gam.forget(["1"])
        assert planned.turns == ("1",)
        calls = engine.calls
        await gam.build()
        assert engine.calls - calls == planned.calls


async def test_a_call_in_flight_while_its_turn_is_deleted_keeps_no_words(tmp_path: Path) -> None:
    draw = random.Random(2)
    with Store.open(tmp_path / "mgl.sqlite") as store:
        gam, *_ = memories(store, Quoting())
        turn, word = say(0, draw)
        await gam.append(turn)
        await gam.append(say(1, draw)[0])

        class Interrupted(Quoting):
            async def generate(self, request: Request) -> Completion:
                completion = await super().generate(request)
                if word in request.messages[-1].content.lower():
                    await gam.forget(["0"]) if "0" not in done else None
                    done.add("0")
                return completion

        done: set[str] = set()
        other = memories(store, Interrupted())[1]
        keep = AnswerKeeper(store, TALK.id)
        await other.build()
        with keep.watch():
            answer = await other.answer(Question(f"What of {word.title()}?"))
        assert done
        keep.put(other.id, answer)
        assert find_words(store.path, {word} - words_of(json.dumps(to_plain(answer)))) == set()
