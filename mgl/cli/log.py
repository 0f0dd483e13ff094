"""``mgl log``: the edits of a memory with their sources, or the model calls it made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mgl.cli.options import AsJson, Memory, OfKind, complete_id, open_lab, option
from mgl.cli.output import format_turn, format_value, one_line, print_json, print_table, say
from mgl.types import Conversation

if TYPE_CHECKING:
    from mgl.store.records import EditRecord
    from mgl.types import Source

TURNS: Final = frozenset({"turn", "turns", "through", "boundaries", "masked"})
"""The fields of payloads that hold numbers of turns."""
LEFT_OUT: Final = frozenset({"quote", "span", "mention", "marks"})
FIELDS = (
    *("stage", "outcome", "finish_reason", "input_tokens", "cached_tokens", "output_tokens"),
    *("seconds", "way", "loosened", "error"),
)


def log(
    source: Memory,
    calls: Annotated[bool, option("--calls", "Show the model calls instead.")] = False,
    memory: OfKind = None,
    as_json: AsJson = False,
) -> None:
    """Show the edits of a memory with their sources.

    Each edit says whether it was applied, or why it was rejected.
    """
    from mgl import registry
    from mgl.memories.results import call_json

    with open_lab() as lab:
        found = lab.memory(complete_id(lab, source), memory)
        if not calls:
            edits = lab.edits(found.id)  # before their turns, which another process may add to
            if not edits:
                kind = found.record.kind
                is_here = registry.has("memory", kind)
                why = f"{kind} has written none" if is_here else f"{kind} is not installed"
                say(f"no edits in the log of {found.id}: {why}")
            if found.turns is None:
                _print_edits(edits, lab.document(found.id), frozenset(), as_json)
            else:
                told = lab.read_transcript(found.id)
                _print_edits(edits, told.conversation, told.forgotten, as_json)
            return
        rows = [call_json(call) for call in lab.calls(found.id)]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("KEY", *(field.removesuffix("_tokens").upper().replace("_", " ") for field in FIELDS)),
        [(row["key"][:12], *(_format(row[field]) for field in FIELDS)) for row in rows],
    )


def _print_edits(
    edits: list[EditRecord], source: Source, forgotten: frozenset[int], as_json: bool
) -> None:
    """Print edits by their step, counted from 1 as ``mgl show --step`` does, and turns by their
    ids; of the ``forgotten`` ones, that they were deleted."""
    is_talk = isinstance(source, Conversation)
    document = source.transcript if isinstance(source, Conversation) else source
    if as_json:
        from mgl.memories.results import edit_json

        print_json([edit_json(edit, document) for edit in edits])
        return
    turns = source.turns if isinstance(source, Conversation) else ()
    for edit in edits:
        outcome = edit.outcome if edit.reason is None else f"{edit.outcome}: {edit.reason}"
        score = "" if edit.score is None else f" {edit.score:.2f}"
        payload = format_value(_name_turns(dict(edit.payload), [turn.id for turn in turns]))
        op = "unfreeze" if edit.payload.get("frozen") is False else edit.op
        head = f"step {edit.chunk + 1}  {op}"
        typer.echo(f"{head} ({one_line(outcome)}{score})  {payload}")
        if edit.op == "append" and "turn" in edit.payload and is_talk:
            number = edit.payload["turn"]
            typer.echo(f"    {format_turn(turns[number], is_deleted=number in forgotten)}")
        if edit.span is not None:
            quote = document.quote(edit.span)
            typer.echo(f"    [{edit.span.start}:{edit.span.end}] “{one_line(quote)}”")


def _name_turns(value: Any, ids: Sequence[str]) -> Any:
    """Replace the numbers of turns in a payload by their ids, and leave out what is told beside it:
    quotes, and where they stand."""
    if not isinstance(value, dict):
        return value
    named = {}
    for name, each in value.items():
        if name in TURNS and ids:
            numbers = each if isinstance(each, list) else [each]
            named[name] = [ids[number] for number in numbers]
        elif name == "spans":
            pairs = [(at["start"], at["end"]) if isinstance(at, dict) else at for at in each]
            named[name] = [f"{start}-{end}" for start, end in pairs]
        elif name not in LEFT_OUT:
            named[name] = _name_turns(each, ids)
    return named


def _format(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return "-" if value is None else one_line(str(value), 80)
