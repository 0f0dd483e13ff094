"""What the page shows of a memory, and the page as one file.

The page is the same whether it is served or exported: a frame without content and scripts that
fill it from ``page_data``, which an exported file holds and a served page fetches. Texts of the
document, the model or the user are JSON until a script puts them in as text, never as markup.

An exported file needs no network and no server. Its content security policy runs only its own
script and style, by their hashes. Its address can end in ``#node=<id>`` or ``#edge=<id>``, which
opens that element and its passage, and in ``&step=<n>``, which shows the graph after that step.

It needs a browser of 2024 or later.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from string import Template
from typing import Any, Final

from mgl.memories.results import answer_json, describe_reading, edit_json
from mgl.memories.view import GraphView, ShownTalk, ViewEdge, optional_fields
from mgl.store.records import EditRecord
from mgl.types import Document, Section, Span
from mgl.web.arrange import (
    Look,
    arrange,
    choose_looks,
    drop_unseen,
    is_holding,
)
from mgl.web.escape import asset, html_text, make_visible, script_hash, script_json
from mgl.web.layout import Place, positions
from mgl.web.passages import Mark, cut_text, section_label

__all__ = ["bundle", "page_data", "to_html"]

_STYLES: Final = ("palette.css", "page.css")
_MAIN: Final = "memory.js"
_QUOTE: Final = 4000
_IMPORT: Final = re.compile(r'^import (?:[^;"]*from )?"\./([a-z]+\.js)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:const|let|function|class)\b)", re.MULTILINE)


def to_html(
    view: GraphView,
    edits: Sequence[EditRecord] = (),
    *,
    place: Place = positions,
    talk: ShownTalk | None = None,
) -> str:
    """Make the page as one file, to be written as UTF-8, with the log of edits where it is given.

    ``talk`` is the conversation that the view is of, whose turns are shown with their times.
    The same view gives the same page. Quotes of more than 4,000 characters are shortened in the
    panel of an element. Elements that a step took away are shown up to that step.
    """
    script = bundle(_MAIN)
    style = "".join(asset(name) for name in _STYLES)
    log = {"edits": [edit_json(each, view.document) for each in edits]}
    data = make_visible({"page": page_data(view, place, talk), "log": log})
    return Template(asset("memory.html")).substitute(
        head=(
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">\n'
            f"<title>{html_text(view.document.name)}</title>\n<style>{style}</style>"
        ),
        scripts=(
            f'<script type="application/json" id="data">{script_json(data)}</script>'
            f'\n<script type="module">{script}</script>'
        ),
    )


def bundle(main: str) -> str:
    """Join a module of the assets and all that it imports into one script.

    No two import each other, and their top-level names are distinct, so that one scope holds all.
    """
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        source = asset(name)
        for wanted in _IMPORT.findall(source):
            if wanted not in parts:
                add(wanted)
        parts[name] = _EXPORT.sub("", _IMPORT.sub("", source))

    add(main)
    return "\n".join(parts.values())


def _policy(script: str, style: str) -> str:
    """Allow only this script and style, by their hashes."""
    return (
        f"default-src 'none'; script-src {script_hash(script)}; style-src {script_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def page_data(
    view: GraphView, place: Place = positions, talk: ShownTalk | None = None
) -> dict[str, Any]:
    """Gather what the page shows of a memory, as JSON values; ``place`` says where nodes are.

    ``turns`` are those of the ``talk``, null without one: each line's start and end, and where its
    words begin (``said``). One that corrects another is to be shown in its ``place``, which is the
    other's number. Sections without any other turn are left out.
    """
    view = drop_unseen(arrange(view))
    kinds = choose_looks(node.kind for node in view.nodes)
    document = view.document
    number = {node.id: index for index, node in enumerate(view.nodes)}
    kind = {look.kind: index for index, look in enumerate(kinds)}
    drawn, held = _split(view)
    points = _points(view, drawn, place)
    sections = document.sections if talk is None else _keep_sections(document, talk)
    text = replace(document, sections=sections)
    return {
        "memory_id": view.memory_id,
        "memory": view.memory,
        "model": view.model,
        "name": document.name,
        "length": len(document.text),
        "questions": list(view.questions),
        "answers": [
            {**answer_json(answer), "reading": describe_reading(answer, document)}
            for answer in view.answers
        ],
        "steps": view.length,
        "sections": [
            {"label": section_label(each), "start": each.start, "end": each.end, "day": each.day}
            for each in sections
        ],
        "kinds": [
            {"name": look.kind, "shape": look.shape, "colour": look.colour} for look in kinds
        ],
        "nodes": [
            {
                "id": node.id,
                "kind": kind[node.kind],
                "label": node.label or node.id,
                "content": node.content,
                "step": node.step,
                **points.get(node.id, {}),
                **optional_fields(node),
                **_passage(document, node.span),
            }
            for node in view.nodes
        ],
        "edges": [
            {
                "id": edge.id,
                "source": number[edge.source],
                "target": number[edge.target],
                "relation": edge.relation,
                "step": edge.step,
                **optional_fields(edge),
                **_passage(document, edge.span),
            }
            for edge in drawn
        ],
        "holds": [
            [number[edge.source], number[edge.target], edge.step, edge.gone] for edge in held
        ],
        "text": cut_text(text, _marks(view, kinds, drawn)),
        "turns": None if talk is None else _turns(talk),
    }


def _keep_sections(document: Document, told: ShownTalk) -> tuple[Section, ...]:
    """Drop the sections whose turns are all shown elsewhere, in the place of others, and join the
    two parts of a section that these had split."""
    talk, starts = told.conversation, [section.start for section in document.sections]
    kept = {
        bisect_right(starts, talk.line_start(number)) - 1
        for number in range(len(talk.turns))
        if told.find_corrected(number) is None
    }
    found: list[Section] = []
    for index, section in enumerate(document.sections):
        if index in kept and found and found[-1].label == section.label:
            found[-1] = replace(found[-1], end=section.end)
        elif index in kept:
            found.append(section)
    return tuple(found)


def _turns(told: ShownTalk) -> list[dict[str, Any]]:
    talk = told.conversation
    numbers = range(len(talk.turns))
    lines, words = map(talk.line_span, numbers), map(talk.span, numbers)
    return [
        {
            "id": turn.id,
            "start": line.start,
            "said": said.start,
            "end": line.end,
            "speaker": turn.speaker,
            "time": turn.time and turn.time.isoformat(),
            "forgotten": number in told.forgotten,
            "is_reply": number in told.replies,
            "place": told.find_corrected(number),
            "corrected": told.corrections[number].corrected_at
            if number in told.corrections
            else None,
        }
        for number, turn, line, said in zip(numbers, talk.turns, lines, words, strict=True)
    ]


def _split(view: GraphView) -> tuple[list[ViewEdge], list[ViewEdge]]:
    """Split the edges into those that are drawn and those of the hierarchy, a tree."""
    nodes = {node.id: node for node in view.nodes}
    held = [edge for edge in view.edges if is_holding(nodes[edge.source], nodes[edge.target])]
    ways = {edge.id for edge in held}
    return [edge for edge in view.edges if edge.id not in ways], held


def _points(
    view: GraphView, edges: Sequence[ViewEdge], place: Place
) -> dict[str, dict[str, float]]:
    """Place the nodes that are drawn: all but categories."""
    number = {node.id: index for index, node in enumerate(n for n in view.nodes if not n.layer)}
    points = place(len(number), [(number[edge.source], number[edge.target]) for edge in edges])
    return {each: {"x": x, "y": y} for each, (x, y) in zip(number, points, strict=True)}


def _passage(document: Document, span: Span) -> dict[str, Any]:
    whole = document.quote(span)
    return {
        "start": span.start,
        "end": span.end,
        "quote": whole[:_QUOTE] + ("…" if len(whole) > _QUOTE else ""),
    }


def _marks(view: GraphView, kinds: Sequence[Look], drawn: Sequence[ViewEdge]) -> list[Mark]:
    colour = {look.kind: f"k{look.colour}" for look in kinds}
    nodes = [
        Mark(f"n{index}", node.span.start, node.span.end, colour[node.kind], node.layer > 0)
        for index, node in enumerate(view.nodes)
    ]
    edges = [
        Mark(f"e{index}", edge.span.start, edge.span.end, "edge", behind=True)
        for index, edge in enumerate(drawn)
    ]
    return nodes + edges
