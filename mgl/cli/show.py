"""``mgl show``: a memory with its nodes and answers, or one turn, topic or node of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson, Memory, OfKind, argument, complete_id, open_lab, option
from mgl.cli.output import (
    format_progress,
    format_turn,
    format_value,
    one_line,
    print_answer,
    print_json,
    print_nodes,
    print_pairs,
    print_stats,
)
from mgl.errors import InputError, UsageError

if TYPE_CHECKING:
    from mgl.lab import Lab
    from mgl.memories.results import MemorySummary
    from mgl.memories.view import GraphView, ShownTalk

LATEST = 20
"""Turns that are printed, at most."""
LEFT_OUT = ("turns", "marks")  # numbers of turns


def show(
    source: Memory,
    item: Annotated[str | None, argument("ITEM", "Id of a turn, a topic or a node.")] = None,
    step: Annotated[int | None, option("--step N", "Show it as it was after N steps.")] = None,
    memory: OfKind = None,
    as_json: AsJson = False,
) -> None:
    """Show a memory with its nodes and answers, or one item of it.

    A conversation is shown with its latest turns, a topic with its links and turns, an entity with
    its facts and turns, and a turn with what it is part of.
    """
    with open_lab() as lab:
        summary = lab.memory(complete_id(lab, source), memory)
        if item is None:
            _show_memory(lab, summary, step, as_json)
        else:
            _show_item(lab, summary, item, as_json)


def _show_memory(lab: Lab, summary: MemorySummary, step: int | None, as_json: bool) -> None:
    from mgl.memories.results import answer_json
    from mgl.web.export import to_json

    record, whole, stats = summary.record, lab.view(summary.id), lab.stats(summary.id)
    view = _view_at(whole, step)
    if as_json:
        graph = {} if step is None else {"step": step, "graph": json.loads(to_json(view))}
        answers = [answer_json(answer) for answer in view.answers]
        print_json({**summary.to_json(), "stats": asdict(stats), **graph, "answers": answers})
        return
    told = None if summary.turns is None else lab.read_transcript(summary.id)
    name = one_line(summary.document)
    pairs = {"memory": f"{summary.id} ({record.kind})"}
    if told is not None:
        pairs["conversation"] = f"{name}, {format_progress(summary)}"
    else:
        pairs["document"] = f"{name}, {record.tokens:,} tokens"
        pairs["read"] = format_progress(summary)
    pairs["model"] = one_line(record.model_id)
    pairs["questions"] = "\n".join(map(one_line, summary.questions)) or "(none yet)"
    if step is not None:
        pairs["step"] = f"{step} of {whole.length}"
    print_pairs(pairs)
    if step is None:
        print_stats(stats, summary.unit, summary.turns)
    print_nodes(view)
    if told is not None and step is None:
        _print_turns(told)
    for answer in view.answers:
        typer.echo(f"\nquestion: {one_line(answer.question)}")
        print_answer(answer, None if told is None else told.conversation.turns)


def _print_turns(told: ShownTalk) -> None:
    """Print the latest turns of a conversation, without deleted ones."""
    numbered = enumerate(told.conversation.turns)
    turns = [turn for number, turn in numbered if number not in told.forgotten]
    earlier = max(0, len(turns) - LATEST)
    typer.echo(f"\nturns{f', the latest {LATEST} of {len(turns):,}' if earlier else ''}:")
    for turn in turns[earlier:]:
        typer.echo(f"  {format_turn(turn, 200)}")


def _view_at(view: GraphView, step: int | None) -> GraphView:
    try:
        return view.at(view.length if step is None else step)
    except ValueError as refused:
        raise UsageError(
            f"this memory has no step {step}",
            hint=f"give --step a number from 0 to {view.length}",
        ) from refused


def _show_item(lab: Lab, summary: MemorySummary, item: str, as_json: bool) -> None:
    """Show what a memory's export says of an item, and which rows link to it or contain it."""
    from mgl.web.export import to_json

    is_talk = summary.turns is not None
    data = lab.export(summary.id) if is_talk else json.loads(to_json(lab.view(summary.id)))
    told = lab.read_transcript(summary.id) if is_talk else None  # with all turns that data names
    turns = [] if told is None else told.conversation.turns
    forgotten = frozenset() if told is None else told.forgotten
    rows = [(name, row) for name, part in data.items() for row in _rows(part)]
    found = next((row for name, row in rows if row.get("id") == item and name != "turns"), None)
    number = next((number for number, turn in enumerate(turns) if turn.id == item), None)
    if found is None and number is None:
        raise InputError(
            f"{summary.document} has nothing with the id {item!r}",
            hint=f"`mgl show {summary.id}` lists ids, `mgl export {summary.id}` has all of them",
        )
    related = [(name, row) for name, row in rows if _refers(row, item, number)]
    if as_json:
        print_json({"item": found or item, "related": [row for _, row in related]})
        return

    def tell(number: int) -> str:
        return format_turn(turns[number], is_deleted=number in forgotten)

    if found is not None:
        print_pairs(
            {key: format_value(value) for key, value in found.items() if key not in LEFT_OUT}
        )
        for each in _turn_numbers(found, data) if is_talk else ():
            typer.echo(f"  {tell(each)}")
    elif number is not None:
        typer.echo(tell(number))
    for name, row in related:
        typer.echo(f"{name}: {format_value({k: v for k, v in row.items() if k not in LEFT_OUT})}")


def _rows(part: Any) -> list[dict[str, Any]]:
    rows = list(part.values()) if isinstance(part, dict) else part
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _refers(row: dict[str, Any], item: str, number: int | None) -> bool:
    """Whether a row of an export links to an item, contains it, or stands on a turn's number."""
    ends = {row.get("source"), row.get("target"), *row.get("children", ())}
    return item in ends or (number is not None and number in row.get("turns", ()))


def _turn_numbers(row: dict[str, Any], data: dict[str, Any]) -> list[int]:
    """Find the turns that an item was made of: its own, or those of the episodes it is from."""
    episodes = {mention["episode"] for mention in row.get("mentions", ())}
    parts = [each["turns"] for each in _rows(data.get("episodes")) if each["number"] in episodes]
    return sorted({*row.get("turns", ()), *(number for part in parts for number in part)})
