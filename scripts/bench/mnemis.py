#!/usr/bin/env python3
"""Measure Mnemis on LoCoMo: what it costs, selects, finds and answers, by route.

    python scripts/bench/mnemis.py ingest     graph and cost
    python scripts/bench/mnemis.py pairs      --out FILE: pairs of names for a reader to judge;
                                              --score FILE: precision and recall by the verdicts
    python scripts/bench/mnemis.py selection  System-2: offered, selected, reached, by question
    python scripts/bench/mnemis.py evidence   gold turns among the episodes of the k best
    python scripts/bench/mnemis.py answers    F1 and BLEU-1, tokens a question; --out FILE
    python scripts/bench/mnemis.py growth     the hierarchy extended, against rebuilt

All take ``--data FILE``, ``--conversation conv-26 ...``, ``--sessions 6`` (the first six), and
``--set name=value ...`` for options of Mnemis. Questions are those of categories 1 to 4 whose
evidence lies in these sessions. ``evidence`` and ``answers`` take the five settings of Table 4
over one build: System-1 over episodes (RAG), over entities and facts (graph), over both; System-2;
both routes. ``--set routes=system1`` keeps to the settings of that route, which call no model to
find anything and build no hierarchy.

The preset is the model profile's: with a small model ``--set preset=paper`` (or
``extraction=model``) has the model extract. Calls are logged in MGL_HOME: an interrupted run
resumes, and what ran before is replayed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from commands import Command, add_locomo, command_parser, run_command
from measuring import (
    ANSWER_HEAD,
    CATEGORY_HEAD,
    COST_HEAD,
    KeptRows,
    LocomoSample,
    Pair,
    answer_lines,
    answer_row,
    by_category,
    cost,
    differences,
    draw,
    kept_or_made,
    pair_scores,
    percent,
    quantity,
    reach_lines,
    read_samples,
    read_verdicts,
    write_pairs,
)
from mnemis_figures import (
    GROUPS,
    Named,
    describe_memory,
    find_kept_apart,
    find_merged,
    quote_name,
)

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.scorers.words import evidence_recall
from mgl.lab import Lab
from mgl.lab.talk import Talk
from mgl.llm.concurrency import for_each
from mgl.memories.mnemis import MnemisConfig
from mgl.memories.mnemis.retrieval import Reading, rank_episodes
from mgl.memories.mnemis.state import State
from mgl.memories.options import read_settings
from mgl.models.shipped import home
from mgl.retrieval.opening import DEFAULT_EMBEDDER, open_embedder
from mgl.retrieval.turns import TurnIndex
from mgl.types import Conversation, StageUsage

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
FUSED_TURNS = "turns by five orders and speaker"
PAPER = {  # Table 3: LoCoMo with GPT-4.1-mini; tokens in, tokens out, seconds
    "base graph": ("3.87e7", "1.06e6", "1111.40"),
    "hierarchy": ("1.39e7", "9.27e5", "3873.26"),
    "selection": ("1.37e6", "1.21e5", "3637.65"),
}


def samples(arguments: Arguments) -> list[LocomoSample]:
    return read_samples(arguments.data, arguments.conversation, arguments.sessions)


def asked(sample: LocomoSample, arguments: Arguments) -> Sequence[Item]:
    """Its questions; UsageError where there are none."""
    if not sample.evident:
        raise UsageError(f"nothing is asked of {sample.name}", hint="take more --sessions")
    return sample.evident[: arguments.limit]


def settings(arguments: Arguments) -> dict[str, Mapping[str, str]]:
    """The settings that agree with what is set by hand."""
    given = read_settings(arguments.set)
    chosen = {
        name: own
        for name, own in SETTINGS.items()
        if all(given.get(option, value) == value for option, value in own.items())
    }
    if not chosen:
        raise UsageError("no setting has these routes and kinds", hint="leave one of them out")
    return chosen


def built(lab: Lab, sample: LocomoSample, arguments: Arguments, **own: str) -> Talk:
    options = {**read_settings(arguments.set), **own}
    talk = lab.remember(sample.conversation, memory="mnemis", **options)
    talk.run(talk.memory.build)
    return talk


def read(talk: Talk, items: Sequence[Item]) -> dict[str, Reading]:
    """What is found for each question, by its id; some are asked at once."""
    found: dict[str, Reading] = {}

    async def one(item: Item) -> None:
        found[item.id] = await talk.memory.read(item.question)

    talk.run(lambda: for_each(items, one, at_once=AT_ONCE))
    return found


def say(*lines: str) -> None:
    if lines:
        print(*lines, sep="\n", flush=True)


def head(*columns: str) -> None:
    say(f"\n| {' | '.join(columns)} |", f"|{'---|' * ' | '.join(columns).count('|')}---|")


# Ingestion


def ingest(lab: Lab, arguments: Arguments) -> None:
    for sample in samples(arguments):
        began = time.monotonic()
        talk = built(lab, sample, arguments)
        say(f"\n{sample.conversation.name}: memory {talk.id}, {time.monotonic() - began:.0f} s")
        tell_cost(lab, talk)
        sessions = len({turn.session for turn in sample.conversation.turns})
        say(f"{len(sample.conversation.turns)} turns in {sessions} sessions")
        say(*describe_memory(talk.memory.state, lab.edits(talk.id)))


def tell_cost(lab: Lab, talk: Talk) -> None:
    """The calls that were issued for a memory, in this run and those before it."""
    calls = lab.calls(talk.id)
    head("stage", COST_HEAD)
    for stage in dict.fromkeys(call.stage for call in calls):
        say(f"| {stage} | {cost(call for call in calls if call.stage == stage)} |")
    head("all of", COST_HEAD, "paper's tokens in", "out", "seconds, on LoCoMo")
    for group, paper in PAPER.items():
        own = cost(call for call in calls if call.stage in GROUPS[group])
        say(f"| {group} | {own} | {' | '.join(paper)} |")
    say(f"\nthis run: {quantity(talk.usage().total)}")


# De-duplication


def pairs(lab: Lab, arguments: Arguments) -> None:
    if arguments.score is not None:
        scores = pair_scores(read_verdicts(arguments.score))
        say(f"precision, of merged pairs that are the same: {percent(scores.precision)}")
        say(f"missed, of pairs kept apart that are the same: {percent(scores.missed)}")
        say(f"recall, weighed by how many pairs there are: {percent(scores.recall)}")
        say(f"without a verdict: {scores.open}")
        return
    if arguments.out is None:
        raise UsageError("there is no file for the pairs", hint="--out FILE, or --score FILE")
    joined: list[Pair] = []
    apart: list[Pair] = []
    embedder = open_embedder(arguments.embedder or DEFAULT_EMBEDDER, home())
    for sample in samples(arguments):
        talk = built(lab, sample, arguments)
        state, rows = talk.memory.state, lab.edits(talk.id)
        config = MnemisConfig.model_validate(lab.memory(talk.id).record.config)
        alike = talk.run(partial(find_kept_apart, embedder, state, config))
        named = find_merged(row for row in rows if row.op in ("add_entity", "repeat"))
        joined += [shown(sample.conversation, state, *pair, True) for pair in named]
        apart += [shown(sample.conversation, state, *pair, False) for pair in alike]
    drawn = draw(joined, apart, arguments.count, arguments.seed)
    write_pairs(arguments.out, drawn)
    count = sum(pair.merged for pair in drawn)
    say(f"{count} of {len(joined)} merged pairs, and {len(drawn) - count} of {len(apart)} apart")


def shown(conversation: Conversation, state: State, one: Named, other: Named, merged: bool) -> Pair:
    lines = (quote_name(conversation, state, named) for named in (one, other))
    return Pair(one.name, other.name, *lines, merged)


# Selection


def selection(lab: Lab, arguments: Arguments) -> None:
    shares: list[float] = []
    layers: defaultdict[int, Counter[str]] = defaultdict(Counter)
    ended: Counter[str] = Counter()
    head("question", "layer", "offered", "selected", "with all below", "entities reached")
    for sample in samples(arguments):
        talk = built(lab, sample, arguments, routes="system2", kinds="rag")
        total = len(talk.memory.state.entities)
        items = asked(sample, arguments)
        readings = read(talk, items)
        for item in items:
            made = readings[item.id].selection
            shares.append(len(made.entities) / max(1, total))
            ended.update(failed=made.failed, cut=made.cut)
            reached = f"{len(made.entities)} of {total}"
            for of in made.layers:
                taken = f"{of.offered} | {of.selected} | {of.taken_whole}"
                say(f"| {item.id} | {of.layer} | {taken} | {'' if of.layer else reached} |")
                layers[of.layer].update(
                    offered=of.offered, selected=of.selected, whole=of.taken_whole
                )
            if not any(of.layer == 0 for of in made.layers):
                say(f"| {item.id} | 0 | 0 | 0 | 0 | {reached} |")
    head("layer", "offered", "selected", "with all below")
    for layer, sums in sorted(layers.items(), reverse=True):
        say(f"| {layer} | {sums['offered']} | {sums['selected']} | {sums['whole']} |")
    say("", *reach_lines(shares))
    say(f"replies that could not be used: {ended['failed']}; nodes not offered: {ended['cut']}")


# Evidence


def episodes(setting: str, reading: Reading, state: State) -> Sequence[int]:
    """The episodes of a setting, the best first."""
    return rank_episodes(reading.found, state) if setting == "S1 graph" else reading.episodes


def evidence(lab: Lab, arguments: Arguments) -> None:
    k = read_settings(arguments.set).get("k", MnemisConfig().k)
    scores: defaultdict[str, Scores] = defaultdict(dict)
    empty: Counter[str] = Counter()
    embedder = open_embedder(arguments.embedder or DEFAULT_EMBEDDER, home())
    for sample in samples(arguments):
        turns = sample.conversation.turns
        for setting, own in settings(arguments).items():
            talk = built(lab, sample, arguments, **own)
            state, items = talk.memory.state, asked(sample, arguments)
            readings = read(talk, items)
            for item in items:
                numbers = episodes(setting, readings[item.id], state)[:k]
                ids = [turns[t].id for n in numbers for t in state.episodes[n].turns]
                recall = evidence_recall(ids, item.evidence, len(ids))
                scores[setting][item.id] = (item.category, recall)
                empty[setting] += not ids
        plain = TurnIndex(embedder)
        plain.extend({place: turn.line for place, turn in enumerate(turns)})
        spoken = {
            name: [place for place, turn in enumerate(turns) if turn.speaker == name]
            for name in {turn.speaker for turn in turns}
        }
        for item in asked(sample, arguments):
            for name, places in (
                (
                    "turns by embedding",
                    [hit.id for hit in plain.alone.search(item.question.text, len(turns))],
                ),
                (FUSED_TURNS, plain.rank(item.question.text, spoken)),
            ):
                ids = [turns[place].id for place in places]
                recall = evidence_recall(ids, item.evidence, k)
                scores[name][item.id] = (item.category, recall)
    head(f"evidence at k = {k}", CATEGORY_HEAD, "found nothing")
    for name, by_question in scores.items():
        cells = by_category(list(by_question.values()), each=True)
        say(f"| {name} | {cells} | {empty[name]} |")
    for base in ("S1 RAG", FUSED_TURNS):
        if base in scores:
            head(f"less {base}", CATEGORY_HEAD)
            say(*differences(scores, base))
    say("\nWithout ranking=context S1 both has the episodes of S1 RAG, facts and entities beside.")


# Answers


def answers(lab: Lab, arguments: Arguments) -> None:
    head("setting", ANSWER_HEAD)
    for setting in settings(arguments):
        rows = [
            row for sample in samples(arguments) for row in said_of(lab, sample, setting, arguments)
        ]
        say(*answer_lines(setting, rows))


def said_of(
    lab: Lab, sample: LocomoSample, setting: str, arguments: Arguments
) -> Iterator[dict[str, Any]]:
    """What was answered to each question, kept before the next is asked."""
    talk = built(lab, sample, arguments, **SETTINGS[setting])
    kept = None
    if arguments.out is not None:
        run = {"model": lab.model_id, "conversation": sample.conversation.id}
        models = {"embedder": arguments.embedder, "reranker": arguments.reranker}
        kept = KeptRows(arguments.out, {**run, **models, "options": read_settings(arguments.set)})
    for item in asked(sample, arguments):
        if item.golds:
            made = partial(answer_row, item, talk.ask)
            row = kept_or_made(kept, f"{setting} {item.id}", made)
            told = f"FAILED: {row['error']}" if row["error"] else row["answer"]
            print(f"{row['id']}: {row['gold']} <- {told}", file=sys.stderr, flush=True)
            yield row


# Growth


def of_hierarchy(talk: Talk) -> StageUsage:
    """What the hierarchy took so far; what was replayed counts as what it is worth."""
    stages = talk.usage().by_stage
    return sum(
        (used for stage, used in stages.items() if stage in GROUPS["hierarchy"]), StageUsage()
    )


def growth(lab: Lab, arguments: Arguments) -> None:
    """Each way has a conversation of its own, which grows session by session."""
    options = {**read_settings(arguments.set), "routes": "both"}
    for sample in samples(arguments):
        ways = ("rebuild", "incremental")
        name = f"{sample.conversation.name} {time.time_ns()}"
        talks = {
            way: lab.talk(f"{name} {way}", memory="mnemis", **{**options, "hierarchy": way})
            for way in ways
        }
        own = ("calls", "tokens", "layers", "nodes")
        head("session", "entities", *(f"{way}: {what}" for way in ways for what in own))
        sums = dict.fromkeys(ways, StageUsage())
        for session, turns in groupby(sample.conversation.turns, key=lambda turn: turn.session):
            new, cells = list(turns), []
            for way, talk in talks.items():
                before = of_hierarchy(talk)
                for turn in new:
                    talk.append(turn)
                talk.end_session()
                used, state = of_hierarchy(talk) - before, talk.memory.state
                sums[way] += used
                cells.append(f"{amount(used)} | {state.top} | {len(state.categories)}")
            say(f"| {session} | {len(state.entities)} | {' | '.join(cells)} |")
        say(f"| all | | {' | '.join(f'{amount(sums[way])} | | ' for way in ways)}|")
        (all_calls, all_tokens), (calls, tokens) = (taken(sums[way]) for way in ways)
        say(
            f"\nincremental of rebuilding: {calls / max(1, all_calls):.1%} of the calls, "
            f"{tokens / max(1, all_tokens):.1%} of the tokens"
        )
        rows = lab.edits(talks["incremental"].id)
        again = sum(row.op == "drop_hierarchy" for row in rows)
        say(f"incremental was built anew {again} times, for what had drifted")


def taken(used: StageUsage) -> tuple[int, int]:
    """Calls and tokens, replayed ones with the others."""
    return used.calls + used.replayed, used.input_tokens + used.output_tokens


def amount(used: StageUsage) -> str:
    calls, tokens = taken(used)
    return f"{calls} | {tokens:,}"


COMMANDS: Mapping[str, Command] = {
    "ingest": ingest,
    "pairs": pairs,
    "selection": selection,
    "evidence": evidence,
    "answers": answers,
    "growth": growth,
}


def main() -> None:
    parser = command_parser(__doc__, COMMANDS)
    add_locomo(parser)
    parser.add_argument("--score", type=Path, help="pairs with a reader's verdicts")
    parser.add_argument("--count", type=int, default=50, help="pairs to draw")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the draw")
    run_command(parser, COMMANDS)


if __name__ == "__main__":
    main()
