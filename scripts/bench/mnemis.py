#!/usr/bin/env python3
"""Measure Mnemis on LoCoMo: what it costs, selects and finds, by route.

    python scripts/bench/mnemis.py ingest     graph and cost
    python scripts/bench/mnemis.py selection  System-2: offered, selected, reached, by question
    python scripts/bench/mnemis.py evidence   gold turns among the episodes of the k best
    python scripts/bench/mnemis.py growth     the hierarchy extended, against rebuilt

All take ``--data FILE``, ``--conversation conv-26 ...``, ``--sessions 6`` (the first six), and
``--set name=value ...`` for options of Mnemis. Questions are those of categories 1 to 4 whose
evidence lies in these sessions. ``evidence`` takes the five settings of Table 4 over one build:
System-1 over episodes (RAG), over entities and facts (graph), over both; System-2; both routes.
What they answer is measured by ``mgl eval run locomo``. ``--set routes=system1`` keeps to the
settings of that route, which call no model to find anything and build no hierarchy. Where a setting
finds nothing for some questions, as Table 4's System-2 does for one in ten, it has two rows: over
all, and over the questions with results.

The preset is the model profile's: with a small model ``--set preset=paper`` has the model extract.
Calls are logged in MGL_HOME: an interrupted run resumes, and what ran before is replayed.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any

import numpy as np
from commands import Command, add_locomo, command_parser, run_command
from locomo import LocomoSample, read_samples
from measuring import (
    CATEGORY_HEAD,
    COST_HEAD,
    by_category,
    cost,
    differences,
    quantity,
    reach_lines,
)

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.scorers.retrieval import evidence_recall
from mgl.lab import Lab
from mgl.llm.concurrency import for_each
from mgl.memories.mnemis import MnemisConfig
from mgl.memories.mnemis.retrieval import Reading
from mgl.memories.mnemis.state import State
from mgl.memories.options import read_settings
from mgl.models.shipped import home
from mgl.retrieval.opening import DEFAULT_EMBEDDER, DEFAULT_RERANKER, open_embedder, open_reranker
from mgl.retrieval.turns import TurnIndex, rank_turns
from mgl.store import EditRecord
from mgl.types import StageUsage

Arguments = argparse.Namespace
Scores = dict[str, tuple[str, float]]  # by question: category and score

SETTINGS = {
    "S1 RAG": {"routes": "system1", "kinds": "rag"},
    "S1 graph": {"routes": "system1", "kinds": "graph"},
    "S1 both": {"routes": "system1", "kinds": "all"},
    "S2 only": {"routes": "system2", "kinds": "all"},
    "S1 + S2": {"routes": "both", "kinds": "all"},
}
AT_ONCE = 8  # questions
WITH_RESULTS = ", questions with results"
FUSED_TURNS = "turns in context"
PAPER = {  # Table 3: LoCoMo with GPT-4.1-mini; tokens in, tokens out, seconds
    "base graph": ("3.87e7", "1.06e6", "1111.40"),
    "hierarchy": ("1.39e7", "9.27e5", "3873.26"),
    "selection": ("1.37e6", "1.21e5", "3637.65"),
}


def read_locomo(arguments: Arguments) -> list[LocomoSample]:
    return read_samples(arguments.data, arguments.conversation, arguments.sessions)


def find_questions(sample: LocomoSample, arguments: Arguments) -> Sequence[Item]:
    """The questions on its sessions; UsageError where there are none."""
    if not sample.evident:
        raise UsageError(
            f"{sample.name} has no questions on these sessions", hint="take more --sessions"
        )
    return sample.evident[: arguments.limit]


def choose_settings(arguments: Arguments) -> dict[str, dict[str, str]]:
    """The settings that agree with ``--set``."""
    given = read_settings(arguments.set)
    chosen = {
        name: own
        for name, own in SETTINGS.items()
        if all(given.get(option, value) == value for option, value in own.items())
    }
    if not chosen:
        raise UsageError("no setting has these routes and kinds", hint="leave one of them out")
    return chosen


def build_memory(lab: Lab, sample: LocomoSample, arguments: Arguments, **own: str) -> Any:
    options = {**read_settings(arguments.set), **own}
    talk: Any = lab.remember(sample.conversation, memory="mnemis", **options)
    talk.run(talk.memory.build)
    return talk


def read_all(talk: Any, items: Sequence[Item]) -> dict[str, Reading]:
    """Read for all questions, some at once; readings by the question's id."""
    found: dict[str, Reading] = {}

    async def one(item: Item) -> None:
        found[item.id] = await talk.memory.read(item.question)

    talk.run(lambda: for_each(items, one, at_once=AT_ONCE))
    return found


def print_lines(*lines: str) -> None:
    if lines:
        print(*lines, sep="\n", flush=True)


def print_head(*columns: str) -> None:
    print_lines(f"\n| {' | '.join(columns)} |", f"|{'---|' * ' | '.join(columns).count('|')}---|")


# Ingestion

EXAMPLES, SHOWN_CHILDREN = 10, 6
_LISTED = ("entities", "edges")

GROUPS: Mapping[str, frozenset[str]] = {
    "base graph": frozenset(
        (
            *_LISTED,
            *(f"{stage}_reflection" for stage in _LISTED),
            *("entity_deduplication", "entity_summaries", "edge_deduplication"),
        )
    ),
    "hierarchy": frozenset(
        ("categorise", "name_category", "categorise_again", "describe_category")
    ),
    "selection": frozenset(("select",)),
}
"""The stages of calls as Table 3 groups them; answers are in none."""


def describe_memory(state: State, rows: Sequence[EditRecord]) -> list[str]:
    """Return counts, lost replies, why the hierarchy stopped, and some categories of each layer.

    ``rows`` are the whole log.
    """
    closed = sum(fact.invalid_at is not None for fact in state.facts.values())
    lost = Counter(
        (row.payload["what"].split()[0], row.reason) for row in rows if row.op == "reply"
    )
    stops = [row.payload["stopped"] for row in rows if row.op == "hierarchy"]
    lines = [
        f"{len(state.episodes)} episodes, {len(state.entities)} entities, "
        f"{len(state.facts)} facts, {closed} of them with an end",
        *(f"lost at {stage}: {count} ({reason})" for (stage, reason), count in lost.items()),
        f"the hierarchy stopped: {stops[-1] if stops else 'it was not built'}",
    ]
    for layer in range(1, state.top + 1):
        own = state.categories_of(layer)
        groups = [category for category in own if not category.is_promotion]
        lines.append(
            f"layer {layer}: {len(groups)} categories, {len(own) - len(groups)} promotions"
        )
        for category in groups[:EXAMPLES]:
            children = category.children[:SHOWN_CHILDREN]
            names = ", ".join(state.node(child).name for child in children)
            lines.append(f"  {category.name} <- {len(category.children)}: {names}")
    return lines


def ingest(lab: Lab, arguments: Arguments) -> None:
    for sample in read_locomo(arguments):
        began = time.monotonic()
        talk = build_memory(lab, sample, arguments)
        print_lines(
            f"\n{sample.conversation.name}: memory {talk.id}, {time.monotonic() - began:.0f} s"
        )
        print_cost(lab, talk)
        sessions = len({turn.session for turn in sample.conversation.turns})
        print_lines(f"{len(sample.conversation.turns)} turns in {sessions} sessions")
        print_lines(*describe_memory(talk.memory.state, lab.edits(talk.id)))


def print_cost(lab: Lab, talk: Any) -> None:
    """Print the calls issued for a memory, in this run and earlier ones."""
    calls = lab.calls(talk.id)
    print_head("stage", COST_HEAD)
    for stage in dict.fromkeys(call.stage for call in calls):
        print_lines(f"| {stage} | {cost(call for call in calls if call.stage == stage)} |")
    print_head("all of", COST_HEAD, "paper's tokens in", "out", "seconds, on LoCoMo")
    for group, paper in PAPER.items():
        own = cost(call for call in calls if call.stage in GROUPS[group])
        print_lines(f"| {group} | {own} | {' | '.join(paper)} |")
    print_lines(f"\nthis run: {quantity(talk.usage().total)}")


# Selection


def selection(lab: Lab, arguments: Arguments) -> None:
    shares: list[float] = []
    layers: defaultdict[int, Counter[str]] = defaultdict(Counter)
    ended: Counter[str] = Counter()
    print_head("question", "layer", "offered", "selected", "with all below", "entities reached")
    for sample in read_locomo(arguments):
        talk = build_memory(lab, sample, arguments, routes="system2", kinds="rag")
        total = len(talk.memory.state.entities)
        items = find_questions(sample, arguments)
        readings = read_all(talk, items)
        for item in items:
            made: Any = readings[item.id].selection
            shares.append(len(made.entities) / max(1, total))
            ended.update(failed=made.failed, cut=made.cut)
            reached = f"{len(made.entities)} of {total}"
            for of in made.layers:
                taken = f"{of.offered} | {of.selected} | {of.taken_whole}"
                print_lines(f"| {item.id} | {of.layer} | {taken} | {'' if of.layer else reached} |")
                layers[of.layer].update(
                    offered=of.offered, selected=of.selected, whole=of.taken_whole
                )
            if not any(of.layer == 0 for of in made.layers):
                print_lines(f"| {item.id} | 0 | 0 | 0 | 0 | {reached} |")
    print_head("layer", "offered", "selected", "with all below")
    for layer, sums in sorted(layers.items(), reverse=True):
        print_lines(f"| {layer} | {sums['offered']} | {sums['selected']} | {sums['whole']} |")
    print_lines("", *reach_lines(shares))
    print_lines(f"unusable replies: {ended['failed']}; nodes not offered: {ended['cut']}")


# Evidence


def rank_episodes(reading: Reading, state: State) -> list[int]:
    """Return the episodes that found facts and entities stand on, rank by rank, facts first."""
    ranks = zip_longest(reading.found.get("facts", ()), reading.found.get("entities", ()))
    nodes = (
        state.facts.get(each) or state.entities.get(each) for rank in ranks for each in rank if each
    )
    return list(dict.fromkeys(number for node in nodes if node for number in node.episodes))


def episodes_of(setting: str, reading: Reading, state: State) -> Sequence[int]:
    """The numbers of the episodes that a setting returns, best first."""
    return rank_episodes(reading, state) if setting == "S1 graph" else reading.episodes


def evidence(lab: Lab, arguments: Arguments) -> None:
    k = read_settings(arguments.set).get("k", MnemisConfig().k)
    scores: defaultdict[str, Scores] = defaultdict(dict)
    found: defaultdict[str, set[str]] = defaultdict(set)
    embedder = open_embedder(arguments.embedder or DEFAULT_EMBEDDER, home())
    reranker = open_reranker(arguments.reranker or DEFAULT_RERANKER, home(), embedder=embedder)
    for sample in read_locomo(arguments):
        turns = sample.conversation.turns
        for setting, own in choose_settings(arguments).items():
            talk = build_memory(lab, sample, arguments, **own)
            state, items = talk.memory.state, find_questions(sample, arguments)
            readings = read_all(talk, items)
            for item in items:
                numbers = episodes_of(setting, readings[item.id], state)[:k]
                ids = [turns[t].id for n in numbers for t in state.episodes[n].turns]
                recall = evidence_recall(ids, item.evidence, len(ids))
                scores[setting][item.id] = (item.category, recall)
                if ids:
                    found[setting].add(item.id)
        plain = TurnIndex(embedder)
        plain.extend(turns, range(len(turns)))
        for item in find_questions(sample, arguments):
            in_context = asyncio.run(rank_turns(item.question, turns, plain, reranker=reranker))
            for name, places in (
                (
                    "turns by embedding",
                    [hit.id for hit in plain.lines.search(item.question.text, len(turns))],
                ),
                (FUSED_TURNS, np.argsort(-in_context, kind="stable").tolist()),
            ):
                ids = [turns[place].id for place in places]
                recall = evidence_recall(ids, item.evidence, k)
                scores[name][item.id] = (item.category, recall)
    print_head(f"evidence at k = {k}", CATEGORY_HEAD, "found nothing")
    for name, by_question in scores.items():
        cells = by_category(list(by_question.values()), each=True)
        empty = len(by_question.keys() - found[name]) if name in SETTINGS else 0
        print_lines(f"| {name} | {cells} | {empty} |")
        if empty:
            of = [score for id, score in by_question.items() if id in found[name]]
            print_lines(f"| {name}{WITH_RESULTS} | {by_category(of, each=True)} | 0 |")
    for base in ("S1 RAG", FUSED_TURNS):
        if base in scores:
            print_head(f"less {base}", CATEGORY_HEAD)
            print_lines(*differences(scores, base))
    print_lines(
        "\nWith preset paper S1 both has the episodes of S1 RAG, facts and entities beside."
    )


# Growth


def hierarchy_usage(talk: Any) -> StageUsage:
    """What the hierarchy took so far, replayed calls counted like issued ones."""
    stages = talk.usage().by_stage
    return sum(
        (used for stage, used in stages.items() if stage in GROUPS["hierarchy"]), StageUsage()
    )


def growth(lab: Lab, arguments: Arguments) -> None:
    """Grow one conversation by rebuilding and one by extending, session by session."""
    options = {**read_settings(arguments.set), "routes": "both"}
    for sample in read_locomo(arguments):
        ways = ("rebuild", "incremental")
        name = f"{sample.conversation.name} {time.time_ns()}"
        talks: dict[str, Any] = {
            way: lab.talk(f"{name} {way}", memory="mnemis", **{**options, "hierarchy": way})
            for way in ways
        }
        own = ("calls", "tokens", "layers", "nodes")
        print_head("session", "entities", *(f"{way}: {what}" for way in ways for what in own))
        sums = dict.fromkeys(ways, StageUsage())
        for session, turns in groupby(sample.conversation.turns, key=lambda turn: turn.session):
            new, cells = list(turns), []
            for way, talk in talks.items():
                before = hierarchy_usage(talk)
                for turn in new:
                    talk.append(turn)
                talk.end_session()
                used, state = hierarchy_usage(talk) - before, talk.memory.state
                sums[way] += used
                cells.append(f"{format_usage(used)} | {state.top} | {len(state.categories)}")
            print_lines(f"| {session} | {len(state.entities)} | {' | '.join(cells)} |")
        print_lines(f"| all | | {' | '.join(f'{format_usage(sums[way])} | | ' for way in ways)}|")
        (all_calls, all_tokens), (calls, tokens) = (count_usage(sums[way]) for way in ways)
        print_lines(
            f"\nincremental of rebuilding: {calls / max(1, all_calls):.1%} of the calls, "
            f"{tokens / max(1, all_tokens):.1%} of the tokens"
        )
        rows = lab.edits(talks["incremental"].id)
        again = sum(row.op == "drop_hierarchy" for row in rows)
        print_lines(f"the extended hierarchy was rebuilt {again} times, because it had drifted")


def count_usage(used: StageUsage) -> tuple[int, int]:
    """Calls and tokens, replayed ones included."""
    return used.calls + used.replayed, used.input_tokens + used.output_tokens


def format_usage(used: StageUsage) -> str:
    calls, tokens = count_usage(used)
    return f"{calls} | {tokens:,}"


COMMANDS: Mapping[str, Command] = {
    "ingest": ingest,
    "selection": selection,
    "evidence": evidence,
    "growth": growth,
}


def main() -> None:
    parser = command_parser(__doc__, COMMANDS)
    add_locomo(parser)
    run_command(parser, COMMANDS)


if __name__ == "__main__":
    main()
