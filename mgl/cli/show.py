"""``mgl show``: a memory with its nodes and answers, or one turn, topic or node of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import AsJson, Kind, Memory, open_lab
from mgl.cli.output import (
    format_turn,
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
    from mgl.memories.view import GraphView
    from mgl.types import Conversation

__all__ = ["show"]


def show(
    source: Memory,
    item: Annotated[
        str | None, typer.Argument(metavar="[ITEM]", help="Id of a turn, a topic or a node.")
    ] = None,
    step: Annotated[
        int | None, typer.Option("--step", metavar="N", help="Show it as it was after N steps.")
    ] = None,
    memory: Kind = None,
    as_json: AsJson = False,
) -> None:
    """Show a memory with its nodes and answers, or one item of it.

    Topics show their links and turns, entities their facts and turns, turns where they are kept.
    """
    with open_lab() as lab:
        summary = lab.memory(source, memory)
        if item is None:
            _show_memory(lab, summary, step, as_json)
        else:
            _show_item(lab, summary, item, as_json)


def _show_memory(lab: Lab, summary: MemorySummary, step: int | None, as_json: bool) -> None:
    from mgl.memories.results import answer_json

    record, whole, stats = summary.record, lab.view(summary.id), lab.stats(summary.id)
    view = _view_at(whole, step)
    if as_json:
        from mgl.web.export import to_json

        graph = {} if step is None else {"step": step, "graph": json.loads(to_json(view))}
        answers = [answer_json(answer) for answer in view.answers]
        print_json({**summary.to_json(), "stats": asdict(stats), **graph, "answers": answers})
        return
    turns = None if summary.turns is None else lab.transcript(summary.id)
    name = one_line(summary.document)
    pairs = {"memory": f"{summary.id} ({record.kind})"}
    if turns is not None:
        pairs["conversation"] = f"{name}, {summary.turns:,} turns"
    else:
        pairs["document"] = f"{name}, {record.tokens:,} tokens"
        chunks = f"{summary.chunks_done} of {record.chunks} read"
        pairs |= {"chunks": chunks} if record.chunks else {"steps": f"{summary.chunks_done}"}
    pairs["model"] = one_line(record.model_id)
    pairs["questions"] = "\n".join(map(one_line, record.questions)) or "(any)"
    if step is not None:
        pairs["step"] = f"{step} of {whole.length}"
    print_pairs(pairs)
    if step is None:
        print_stats(stats, summary.unit)
    print_nodes(view)
    for answer in view.answers:
        typer.echo(f"\nquestion: {one_line(answer.question)}")
        print_answer(answer, turns)


def _view_at(view: GraphView, step: int | None) -> GraphView:
    try:
        return view.at(view.length if step is None else step)
    except ValueError as refused:
        raise UsageError(
            f"this memory has no step {step}",
            hint=f"give --step a number from 0 to {view.length}",
        ) from refused


def _show_item(lab: Lab, summary: MemorySummary, item: str, as_json: bool) -> None:
    """Show what a memory's export says of an item, and what refers to it."""
    if summary.turns is None:
        from mgl.web.export import to_json

        data, turns = json.loads(to_json(lab.view(summary.id))), None
    else:
        data, turns = lab.export(summary.id), lab.transcript(summary.id)
    rows = [(name, row) for name, part in data.items() if isinstance(part, list) for row in part]
    found = [row for _, row in rows if isinstance(row, dict) and row.get("id") == item]
    numbers = {turn.id: number for number, turn in enumerate(turns.turns)} if turns else {}
    if not found and item not in numbers:
        raise InputError(
            f"{summary.document} has nothing with the id {item!r}",
            hint=f"`mgl show {summary.id}` lists ids, `mgl export {summary.id}` has all of them",
        )
    related = [(name, row) for name, row in rows if _refers(row, item)]
    if as_json:
        print_json({"item": found[0] if found else item, "related": [row for _, row in related]})
        return
    if turns is not None and item in numbers:
        typer.echo(f"turn {numbers[item] + 1} of {len(turns.turns)}")
        typer.echo(f"  {format_turn(turns.turns[numbers[item]])}")
    else:
        _print_row(found[0], data, turns)
    for name, row in related:
        said = {key: value for key, value in row.items() if key != "turns"} if row else {}
        typer.echo(f"{name}: {_format(said)}")


def _refers(row: Any, item: str) -> bool:
    """Whether a row of an export links to an item or contains it."""
    if row == item:
        return True
    if not isinstance(row, dict):
        return False
    contains = [*row.get("turns", ()), *row.get("children", ())]
    ids = {each["id"] if isinstance(each, dict) else each for each in contains}
    return item in {row.get("source"), row.get("target"), *ids}


def _print_row(row: dict[str, Any], data: dict[str, Any], turns: Conversation | None) -> None:
    own = {key: value for key, value in row.items() if key != "turns"}
    print_pairs({key: _format(value) for key, value in own.items()})
    if turns is None:
        return
    ids = {turn["id"] for turn in row.get("turns", ())}
    for episode in data.get("episodes", ()):
        if episode["number"] in row.get("episodes", ()):
            ids.update(episode["turns"])
    for turn in turns.turns:
        if turn.id in ids:
            typer.echo(f"  {format_turn(turn)}")


def _format(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format(each)}" for key, each in value.items() if each)
    if isinstance(value, list):
        return ", ".join(_format(each) for each in value) or "-"
    return "-" if value in (None, "") else one_line(f"{value}")
