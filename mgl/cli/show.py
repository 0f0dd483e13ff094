"""``mgl show``: one memory, its nodes, and what it answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mgl.cli.options import AsJson, opened
from mgl.cli.output import one_line, print_answer, print_json, print_stats

if TYPE_CHECKING:
    from mgl.memories.view import GraphView, ViewNode

__all__ = ["show"]

_EXAMPLES = 10
_WIDTH = 100


def show(
    identity: Annotated[str, typer.Argument(metavar="ID", help="A memory's id, or how it begins.")],
    step: Annotated[
        int | None,
        typer.Option("--step", metavar="N", help="Show it as it was after N steps."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show one memory, its nodes and its answers."""
    with opened() as lab:
        summary = lab.memory(identity)
        record = summary.record
        whole = lab.view(summary.id)
        stats = lab.stats(summary.id)
    view = _after(whole, step)
    if as_json:
        from dataclasses import asdict

        from mgl.memories.results import answer_json

        print_json(
            {
                **summary.to_json(),
                "stats": asdict(stats),
                **({} if step is None else {"step": step, "graph": _graph(view)}),
                "answers": [answer_json(answer) for answer in view.answers],
            }
        )
        return
    typer.echo(f"memory:    {summary.id} ({record.kind})")
    if summary.turns is None:
        typer.echo(f"document:  {one_line(summary.document)}, {record.tokens:,} tokens")
        if record.chunks:
            typer.echo(f"chunks:    {summary.chunks_done} of {record.chunks} read")
        else:
            typer.echo(f"steps:     {summary.chunks_done}")
    else:
        typer.echo(f"talk:      {one_line(summary.document)}, {summary.turns:,} turns")
    typer.echo(f"model:     {one_line(record.model_id)}")
    for question in record.questions or ("(none: read for whatever may be asked)",):
        typer.echo(f"question:  {one_line(question)}")
    if step is None:
        print_stats(stats, summary.unit)
    else:
        typer.echo(f"step:      {step} of {whole.length}")
    _print_nodes(view)
    for answer in view.answers:
        typer.echo(f"\nasked: {one_line(answer.question)}")
        print_answer(answer)


def _after(view: GraphView, step: int | None) -> GraphView:
    if step is None:
        return view.at(view.length)
    try:
        return view.at(step)
    except ValueError as refused:
        from mgl.errors import UsageError

        raise UsageError(
            f"this memory has no step {step}",
            hint=f"give --step a number from 0 to {view.length}",
        ) from refused


def _graph(view: GraphView) -> object:
    import json

    from mgl.web.export import to_json

    return json.loads(to_json(view))


def _print_nodes(view: GraphView) -> None:
    """A line for each node; under a hyperedge, what it joins. Of layers, some nodes of each."""
    if view.top:
        _print_layers(view)
        return
    nodes = {node.id: node for node in view.nodes}
    joined: dict[str, list[str]] = {node.id: [] for node in view.nodes if node.hyperedge}
    for edge in view.edges:
        for one, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if one in joined and other not in joined:
                joined[one].append(nodes[other].label or other)
    for node in view.nodes:
        _print_node(node)
        if node.hyperedge:
            typer.echo(f"    joins: {one_line(', '.join(joined[node.id])) or '(nothing)'}")


def _print_node(node: ViewNode) -> None:
    place = f"[{node.span.start}:{node.span.end}]"
    typer.echo(f"  {one_line(node.id)} ({node.kind}) {place} {one_line(node.content)}")


def _print_layers(view: GraphView) -> None:
    """The layers from the top: how many nodes, and those of them that hold most."""
    labels = {node.id: node.label or node.id for node in view.nodes}
    held: dict[str, list[str]] = {node.id: [] for node in view.nodes if node.layer}
    for edge in view.edges:
        if edge.source in held:
            held[edge.source].append(labels[edge.target])
    for layer in range(view.top, -1, -1):
        nodes = [node for node in view.nodes if node.layer == layer]
        nodes.sort(key=lambda node: -len(held.get(node.id, ())))
        typer.echo(f"layer {layer}: {len(nodes):,} node{'' if len(nodes) == 1 else 's'}")
        for node in nodes[:_EXAMPLES]:
            _print_node(node)
            if layer:
                names = one_line(", ".join(held[node.id]), _WIDTH) or "(nothing)"
                typer.echo(f"    holds {len(held[node.id]):,}: {names}")
        if len(nodes) > _EXAMPLES:
            typer.echo(f"  … and {len(nodes) - _EXAMPLES:,} more")
