#!/usr/bin/env python3
"""Measure GAM on LoCoMo: what it finds, where it cuts, what it answers, what it costs.

    python scripts/bench/gam.py evidence   gold turns among the 10 returned, no language model;
                                           without=epg: those whose words the summaries repeat
    python scripts/bench/gam.py boundaries session ends found in turns without sessions and times
    python scripts/bench/gam.py build      calls, tokens, topics, links
    python scripts/bench/gam.py answers    F1 and BLEU-1, by method

All take ``--data FILE``, ``--conversation conv-30 ...``, and ``--set name=value ...`` for options
of GAM. Questions are those of categories 1 to 4. Calls are logged in MGL_HOME: an interrupted run
resumes, and what ran before is replayed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from boundaries import BoundaryScores, boundary_scores, drop_greetings, greetings, valleys
from commands import Command, add_locomo, command_parser, run_command
from locomo import LocomoSample, read_samples
from measuring import (
    ANSWER_HEAD,
    CATEGORY_HEAD,
    answer_lines,
    answer_row,
    by_category,
    quantity,
)

from mgl.evaluation.scorers.retrieval import evidence_recall
from mgl.lab import Lab
from mgl.memories.gam.reading import Reading
from mgl.memories.gam.small import UTTERANCE_CHARACTERS
from mgl.memories.gam.state import State
from mgl.memories.options import read_settings
from mgl.models.shipped import home
from mgl.prompt import one_line
from mgl.retrieval.opening import DEFAULT_EMBEDDER, open_embedder
from mgl.retrieval.shifts import open_detector
from mgl.types import Conversation, StageUsage, Turn

Arguments = argparse.Namespace
K = 10


def read_locomo(arguments: Arguments) -> list[LocomoSample]:
    return read_samples(arguments.data, arguments.conversation, arguments.sessions)


def build_memory(lab: Lab, conversation: Conversation, arguments: Arguments, **own: str) -> Any:
    """Build GAM over a conversation; give the talk, whose memory has GAM's own attributes."""
    talk: Any = lab.remember(conversation, memory="gam", **own, **read_settings(arguments.set))
    talk.run(talk.memory.build)
    return talk


def evidence(lab: Lab, arguments: Arguments) -> None:
    scores: list[tuple[str, float]] = []
    fired: Counter[str] = Counter()
    events = 0
    for sample in read_locomo(arguments):
        talk = build_memory(lab, sample.conversation, arguments)
        turns = talk.memory.conversation.turns
        for item in sample.evident:
            reading = talk.run(partial(talk.memory.read, item.question))
            found = find_shown(reading, talk.memory.state, turns)
            scores.append((item.category, evidence_recall(found, item.evidence, len(found) or K)))
            events += reading.candidates
            fired.update(reading.fired)
        print(f"{sample.name}: {len(talk.memory.view().nodes)} topics", file=sys.stderr)
    print(f"| {CATEGORY_HEAD} |")
    print(f"| {by_category(scores)} |")
    for name, count in sorted(fired.items()):
        print(f"{name}: fires for {count / events:.1%} of the candidates")


def find_shown(reading: Reading, state: State, turns: Sequence[Turn]) -> list[str]:
    """The ids of the turns that are read: events, or what summaries that code made repeat."""
    if not reading.topics:
        return [turns[event.turn].id for event in reading.events]
    text = " ".join(text for _, text in reading.show(state, turns))
    return [turn.id for turn in turns if one_line(turn.line)[:UTTERANCE_CHARACTERS] in text]


def boundaries(lab: Lab, arguments: Arguments) -> None:
    """Run the sessions of a conversation together: do boundaries lie where sessions ended?"""
    totals: dict[str, BoundaryScores] = defaultdict(lambda: BoundaryScores(0, 0, 0))
    embedder = open_embedder(arguments.embedder or DEFAULT_EMBEDDER, home())
    detector = open_detector(arguments.detector, home()) if arguments.detector else None
    for sample in read_locomo(arguments):
        turns = sample.conversation.turns
        ends = [n for n in range(len(turns) - 1) if turns[n].session != turns[n + 1].session]
        texts = [turn.text for turn in turns]
        if arguments.no_greetings:
            texts = drop_greetings(texts)
        totals["greetings"] += boundary_scores(greetings(texts), ends)
        totals["valleys"] += boundary_scores(valleys(embedder.embed(texts)), ends)
        if detector is not None:
            begins = detector.find_shifts(texts)
            totals[arguments.detector] += boundary_scores([place - 1 for place in begins], ends)
        if arguments.model is not None:
            found = find_boundaries(lab, sample, arguments)
            totals[arguments.model] += boundary_scores(found, ends)
    print("| by | precision | recall | F1 | found | session ends |")
    print("|---|---|---|---|---|---|")
    for name, total in totals.items():
        cells = f"{total.precision:.3f} | {total.recall:.3f} | {total.f1:.3f}"
        print(f"| {name} | {cells} | {total.found} | {total.gold} |")


def find_boundaries(lab: Lab, sample: LocomoSample, arguments: Arguments) -> list[int]:
    """Let GAM find boundaries in turns without sessions and times."""
    plain = [replace(turn, session=None, time=None) for turn in sample.conversation.turns]
    conversation = Conversation.from_turns(f"{sample.name} without sessions", plain)
    talk = build_memory(lab, conversation, arguments, preset="small", partition="semantic")
    talk.flush()
    used = talk.usage().by_stage.get("boundaries", StageUsage())
    checks = max(1, used.calls + used.replayed)
    print(
        f"{sample.name}: {used.calls + used.replayed} checks, {used.input_tokens / checks:.0f} "
        f"tokens in and {used.output_tokens / checks:.1f} out each",
        file=sys.stderr,
    )
    cuts = [topic.turns[-1] for topic in talk.memory.state.topics.values()]
    return [cut for cut in cuts if cut < len(plain) - 1]


def build(lab: Lab, arguments: Arguments) -> None:
    for sample in read_locomo(arguments):
        began = time.monotonic()
        talk = build_memory(lab, sample.conversation, arguments)
        talk.flush()
        minutes = (time.monotonic() - began) / 60
        state = talk.memory.state
        sessions = len({turn.session for turn in sample.conversation.turns})
        relations = dict(Counter(link.relation for link in state.links))
        print(f"{sample.name}: {len(sample.conversation.turns)} turns in {sessions} sessions")
        print(f"  topics: {len(state.topics)}; links: {len(state.links)} {relations}")
        marks = [mark for topic in state.topics.values() for mark in topic.marks.values()]
        for name in ("temporal", "consistent"):
            share = fmean(getattr(mark, name) for mark in marks) if marks else 0.0
            print(f"  {name}: {share:.1%} of {len(marks)} events")
        for stage, used in talk.usage().by_stage.items():
            print(f"  {stage}: {quantity(used)}, {used.seconds / 60:.1f} minutes")
        print(f"  {minutes:.1f} minutes in all")


def answers(lab: Lab, arguments: Arguments) -> None:
    print(f"| method | {ANSWER_HEAD} |")
    for method in arguments.method:
        rows = []
        own = read_settings(arguments.set) if method == "gam" else {}
        for sample in read_locomo(arguments):
            talk = lab.remember(sample.conversation, memory=method, **own)
            talk.run(talk.memory.build)
            for item in (item for item in sample.items if item.golds):
                row = answer_row(item, talk.ask)
                rows.append(row)
                answer = f"FAILED: {row['error']}" if row["error"] else row["answer"]
                print(f"{method} {item.id}: {row['gold']} <- {answer}", file=sys.stderr)
        print(*answer_lines(method, rows), sep="\n", flush=True)


COMMANDS: Mapping[str, Command] = {
    "evidence": evidence,
    "boundaries": boundaries,
    "build": build,
    "answers": answers,
}


def main() -> None:
    parser = command_parser(__doc__, COMMANDS)
    add_locomo(parser)
    parser.add_argument("--method", nargs="*", default=["gam", "turns", "transcript"])
    parser.add_argument("--detector", help="an adapter of `mgl train boundary` (boundaries)")
    parser.add_argument(
        "--no-greetings", action="store_true", help="drop sentences that greet (boundaries)"
    )
    run_command(parser, COMMANDS)


if __name__ == "__main__":
    main()
