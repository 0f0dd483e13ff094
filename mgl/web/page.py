"""A graph as one HTML file, with the text that it was read from beside it.

The file needs no network and no server. Its content security policy runs only its own script and
style, by their hashes; text of the document, the model or the user enters it escaped or as inert
JSON, never as markup.

Its address can end in ``#node=<id>`` or ``#edge=<id>``, which opens that element and its passage,
and in ``&step=<n>``, which shows the graph as it was after that step.

Categories are shown as a tree, in which the open answer unfolds its paths.

It needs a browser of 2023 or later; without scripts it still shows questions, answers and text.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from string import Template
from typing import Any, Final
from urllib.parse import quote

from mgl.memories.view import GraphView, ViewEdge
from mgl.types import Answer, Citation, Document, Span
from mgl.web.arrange import (
    Look,
    arrange,
    choose_looks,
    drop_unseen,
    is_holding,
    is_membership,
    optional_fields,
)
from mgl.web.escape import asset, html_text, script_json, visible
from mgl.web.layout import positions
from mgl.web.passages import Mark, section_label, text_html

__all__ = ["to_html"]

_SCRIPTS: Final = (
    *("state", "shapes", "areas", "graph", "pointer"),
    *("text", "detail", "tree", "controls", "start"),
)
_QUOTE: Final = 4000


def to_html(view: GraphView) -> str:
    """Make the page, to be written as UTF-8.

    The same view gives the same page. Quotes of more than 4,000 characters are
    shortened in the panel of an element. Elements that a step took away are shown up to that step.
    """
    view = drop_unseen(arrange(view))
    kinds = choose_looks(node.kind for node in view.nodes)
    script = "\n".join(asset(f"{name}.js") for name in _SCRIPTS)
    style = asset("palette.css") + asset("page.css")
    return Template(asset("page.html")).substitute(
        policy=_policy(script, style),
        style=style,
        script=script,
        data=script_json(_data(view, kinds)),
        title=html_text(_title(view)),
        name=html_text(view.document.name),
        size=f"{len(view.document.text):,} characters",
        length=len(view.document.text),
        about=_describe(view),
        asked=_render_questions(view),
        sides="sides three" if view.top else "sides",
        hierarchy=_render_hierarchy(view),
        sections=_render_sections(view.document),
        text=text_html(view.document, _marks(view, kinds)),
    )


def _policy(script: str, style: str) -> str:
    """Allow only this script and style, by their hashes."""
    hashes = (hashlib.sha256(content.encode()).digest() for content in (script, style))
    own, ours = (f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
    return (
        f"default-src 'none'; script-src {own}; style-src {ours}; "
        "base-uri 'none'; form-action 'none'"
    )


def _title(view: GraphView) -> str:
    first = view.questions[0] if view.questions else view.memory
    return f"{first} · {view.document.name}"


def _data(view: GraphView, kinds: Sequence[Look]) -> dict[str, Any]:
    place = {node.id: index for index, node in enumerate(view.nodes)}
    kind = {look.kind: index for index, look in enumerate(kinds)}
    drawn, held = _split(view)
    ways = {(edge.source, edge.target) for edge in held}
    points = _points(view, drawn)
    return {
        "steps": view.length,
        "kinds": [
            {"name": visible(look.kind), "shape": look.shape, "colour": look.colour}
            for look in kinds
        ],
        "nodes": [
            {
                "id": visible(node.id),
                "kind": kind[node.kind],
                "label": visible(node.label or node.id),
                "content": visible(node.content),
                "step": node.step,
                **points.get(node.id, {}),
                **optional_fields(node),
                **_passage(view.document, node.span),
            }
            for node in view.nodes
        ],
        "edges": [
            {
                "id": visible(edge.id),
                "source": place[edge.source],
                "target": place[edge.target],
                "relation": visible(edge.relation),
                "step": edge.step,
                **optional_fields(edge),
                **_passage(view.document, edge.span),
            }
            for edge in drawn
        ],
        "holds": [[place[edge.source], place[edge.target], edge.step, edge.gone] for edge in held],
        "cited": [
            sorted({place[each.node_id] for each in answer.citations if each.node_id in place})
            for answer in view.answers
        ],
        "paths": [
            [
                [place[each] for each in path]
                for path in answer.paths
                if ways.issuperset(pairwise(path))
            ]
            for answer in view.answers
        ],
    }


def _split(view: GraphView) -> tuple[list[ViewEdge], list[ViewEdge]]:
    """Split the edges into those that are drawn and those of the hierarchy, a tree."""
    nodes = {node.id: node for node in view.nodes}
    held = [edge for edge in view.edges if is_holding(nodes[edge.source], nodes[edge.target])]
    ways = {edge.id for edge in held}
    return [edge for edge in view.edges if edge.id not in ways], held


def _points(view: GraphView, edges: Sequence[ViewEdge]) -> dict[str, dict[str, float]]:
    """Place the nodes that are drawn: all but categories."""
    place = {node.id: index for index, node in enumerate(n for n in view.nodes if not n.layer)}
    points = positions(len(place), [(place[edge.source], place[edge.target]) for edge in edges])
    return {each: {"x": x, "y": y} for each, (x, y) in zip(place, points, strict=True)}


def _passage(document: Document, span: Span) -> dict[str, Any]:
    whole = document.quote(span)
    return {
        "start": span.start,
        "end": span.end,
        "quote": visible(whole[:_QUOTE]) + ("…" if len(whole) > _QUOTE else ""),
        "where": visible(section_label(document.section_at(span.start)) or ""),
    }


def _marks(view: GraphView, kinds: Sequence[Look]) -> list[Mark]:
    colour = {look.kind: f"k{look.colour}" for look in kinds}
    nodes = [
        Mark(f"n{index}", node.span.start, node.span.end, colour[node.kind], node.layer > 0)
        for index, node in enumerate(view.nodes)
    ]
    edges = [
        Mark(f"e{index}", edge.span.start, edge.span.end, "edge", behind=True)
        for index, edge in enumerate(_split(view)[0])
    ]
    return nodes + edges


def _describe(view: GraphView) -> str:
    facts = (view.memory, view.model, _counts(view.at(view.length)), f"memory {view.memory_id}")
    return " · ".join(f"<bdi>{html_text(fact)}</bdi>" for fact in facts)


def _counts(view: GraphView) -> str:
    """Count nodes, hyperedges, categories and edges, each element once."""
    nodes = {node.id: node for node in view.nodes}
    areas = sum(node.hyperedge for node in view.nodes)
    categories = sum(node.layer > 0 for node in view.nodes)
    drawn, _ = _split(view)
    edges = sum(not is_membership(nodes[edge.source], nodes[edge.target]) for edge in drawn)
    said = [_count(len(nodes) - areas - categories, "node")]
    if areas:
        said.append(_count(areas, "hyperedge"))
    if categories:
        said.append(_count(categories, "category"))
    if edges or not areas:
        said.append(_count(edges, "edge"))
    return ", ".join(said)


def _count(number: int, noun: str) -> str:
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def _render_questions(view: GraphView) -> str:
    """Show the questions with their answers, the last one open; unanswered ones at the end."""
    labels = {node.id: node.label or node.id for node in view.nodes}
    answered = {answer.question for answer in view.answers}
    open_questions = [each for each in view.questions if each not in answered]
    last = len(view.answers) - 1
    out = [
        _render_answer(answer, index, labels, opened=index == last)
        for index, answer in enumerate(view.answers)
    ]
    out += [
        f'<div class="unanswered"><h2 dir="auto">{html_text(each)}</h2>'
        '<p class="note">Not answered yet.</p></div>'
        for each in open_questions
    ]
    if not out:
        out.append('<p class="note">No question was asked of this graph.</p>')
    return "".join(out)


def _render_answer(answer: Answer, index: int, labels: Mapping[str, str], *, opened: bool) -> str:
    chips = "".join(
        _render_chip(each, number, labels) for number, each in enumerate(answer.citations, 1)
    )
    cited = f'<ol class="chips" aria-label="Cited passages">{chips}</ol>' if chips else ""
    nothing = "" if chips else '<span class="note">cites no passage</span>'
    marks = "".join(f'<span class="note">{html_text(each)}</span>' for each in answer.marks)
    said = html_text(answer.confidence or "")
    sure = f'<span class="confidence {said}">{said} confidence</span>' if said else ""
    ratio = answer.compaction_ratio
    read = (
        "" if ratio is None else f'<span class="note">prompt {ratio:.1%} as long as the text</span>'
    )
    steps = "".join(f'<li dir="auto">{html_text(step)}</li>' for step in answer.trace)
    trace = (
        f'<details class="trace"><summary>{_count(len(answer.trace), "step")} to this answer'
        f"</summary><ol>{steps}</ol></details>"
        if steps
        else ""
    )
    return (
        f'<details class="asked" name="asked" data-answer="{index}"{" open" if opened else ""}>'
        f'<summary><h2 dir="auto">{html_text(answer.question)}</h2></summary>'
        f'<p class="answer" dir="auto">{html_text(answer.text)}</p>'
        f'<div class="ground">{sure}{read}{marks}{nothing}</div>'
        f"{cited}{trace}</details>"
    )


def _render_chip(citation: Citation, number: int, labels: Mapping[str, str]) -> str:
    where = section_label(citation.section)
    span = f"{citation.span.start:,}–{citation.span.end:,}"
    place = html_text(f"{where}, {span}" if where else span)
    said = f'title="{html_text(citation.quote[:_QUOTE])}"'
    name = f"<b>{number}</b> <bdi>{html_text(labels.get(citation.node_id, citation.node_id))}</bdi>"
    inner = f"{name} <small>{place}</small>"
    if citation.node_id not in labels:
        return f'<li><span class="chip gone" {said}>{inner}</span></li>'
    target = html_text("#node=" + quote(visible(citation.node_id), safe=""))
    return f'<li><a class="chip" href="{target}" {said}>{inner}</a></li>'


def _render_hierarchy(view: GraphView) -> str:
    if not view.top:
        return ""
    said = _count(view.top, "layer")
    return (
        '<section class="side" id="hierarchy" aria-label="Hierarchy"><div class="bar">'
        f'<b>Hierarchy</b> <span class="note">{said} of categories</span></div>'
        '<div id="tree"><noscript><p class="note">The hierarchy needs scripts. The paths of an '
        "answer are among the steps to it.</p></noscript></div></section>"
    )


def _render_sections(document: Document) -> str:
    if not document.sections:
        return ""
    options = "".join(
        f'<option value="{each.start}">{html_text(section_label(each) or "")}</option>'
        for each in document.sections
    )
    return f'<select id="sections" aria-label="Go to page or chapter">{options}</select>'
