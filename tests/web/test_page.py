from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from mgl.memories.view import GraphView, Transcript
from mgl.store.records import EditRecord
from mgl.store.turns import Correction
from mgl.types import Conversation, Document, Turn
from mgl.web.export import to_html
from mgl.web.page import bundle, page_data

VOID = {"meta", "input", "link", "img", "br", "base"}


class _Page(HTMLParser):
    """The elements, and the text of scripts and styles, as an HTML parser meets them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            kind = self.elements[-1][1].get("type") or self.open[-1]
            self.raw[kind] = self.raw.get(kind, "") + data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self) -> Any:
        return json.loads(self.raw["application/json"])


def test_the_policy_lets_only_the_pages_own_script_and_style_run(view: GraphView) -> None:
    page = _Page(to_html(view))
    (policy,) = (
        each["content"]
        for each in page.attributes("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for kind, name in (("module", "script"), ("style", "style")):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"


def test_nothing_is_fetched_and_nothing_is_inline(view: GraphView, hostile: GraphView) -> None:
    for each in (view, hostile):
        page = _Page(to_html(each))
        assert len(page.attributes("script")) == 2
        assert len(page.attributes("title")) == len(page.attributes("body")) == 1
        for tag, attributes in page.elements:
            assert "src" not in attributes
            assert "style" not in attributes
            assert not [name for name in attributes if name.startswith("on")]
            assert (attributes.get("href") or "#").startswith(("#", "./"))
            assert tag not in ("link", "img", "iframe", "object", "base")
        assert "url(http" not in page.raw["style"]
        assert "@import" not in page.raw["style"]


@pytest.mark.parametrize("main", ["memory.js", "list.js"])
def test_modules_are_one_script_whose_names_are_distinct(main: str) -> None:
    script = bundle(main)
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    declared = r"^(?:async )?(?:const|let|function|class) (\w+)"
    names = Counter(re.findall(declared, script, re.MULTILINE))
    assert names
    assert [name for name, count in names.items() if count > 1] == []


def test_no_script_reads_markup() -> None:
    for main in ("memory.js", "list.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\b", bundle(main))


def test_the_data_names_nodes_edges_and_what_was_asked(view: GraphView) -> None:
    data = page_data(view)
    assert [each["id"] for each in data["nodes"]] == ["n1", "n2", "n3", "n4"]
    assert data["nodes"][3]["label"] == "n4"
    (answer,) = data["answers"]
    assert [each["node_id"] for each in answer["citations"]] == ["n3", "gone"]
    assert data["questions"] == list(view.questions)
    assert data["steps"] == 2
    edge = data["edges"][0]
    assert (edge["source"], edge["target"], edge["relation"]) == (0, 1, "meets")
    for each in data["nodes"] + data["edges"]:
        assert each["quote"] == view.document.text[each["start"] : each["end"]]


def test_a_file_holds_the_log_where_it_is_given(view: GraphView) -> None:
    edit = EditRecord(0, "add_node", {"id": "n1"}, "rejected", "no\x00 quote", view.nodes[0].span)
    (shown,) = _Page(to_html(view, [edit])).data["log"]["edits"]
    assert (shown["op"], shown["outcome"], shown["reason"]) == ("add_node", "rejected", "no␀ quote")
    assert shown["quote"] == view.document.quote(view.nodes[0].span)
    assert _Page(to_html(view)).data["log"] == {"edits": []}


def test_a_view_without_nodes_or_questions_has_data(view: GraphView) -> None:
    nothing = Document.from_text("e", "")
    empty = replace(view, document=nothing, questions=(), nodes=(), edges=(), answers=(), steps=0)
    data = page_data(empty)
    assert (data["nodes"], data["text"], data["questions"]) == ([], [], [])


def test_a_hierarchy_is_apart_from_the_graph(hierarchy: GraphView) -> None:
    data = page_data(hierarchy)
    ids = [node["id"] for node in data["nodes"]]
    assert [edge["id"] for edge in data["edges"]] == ["knows"]
    held = {(ids[source], ids[target], step) for source, target, step, _ in data["holds"]}
    assert held == {
        (edge.source, edge.target, edge.step) for edge in hierarchy.edges if edge.id != "knows"
    }
    assert {node["id"] for node in data["nodes"] if "x" in node} == {"ann", "bo", "key", "may"}


def test_what_no_step_shows_is_not_on_the_page(hypergraph: GraphView) -> None:
    page = to_html(hypergraph)
    assert "Bo lost it." in page
    assert "Passed over." not in page


def test_a_turn_that_corrects_another_has_its_place() -> None:
    """The first of those that were corrected in a row; its own session is left out."""
    turns = [
        Turn("1", "Ann", "…", None, "morning"),
        Turn("2", "Bo", "Hm.", None, "evening"),
        Turn("3", "Ann", "…", None, "morning"),
        Turn("4", "Ann", "It is Moon.", None, "morning"),
    ]
    corrections = {2: Correction(0, "2024-05-06T09:05:00Z"), 3: Correction(2, "2024-05-07T09:05Z")}
    talk = Conversation.from_turns("talk", turns)
    told = Transcript(talk, frozenset({0, 2}), corrections, frozenset({1}))
    view = GraphView("m", "gam", "tiny", talk.transcript, (), 4, (), ())
    data = page_data(view, talk=told)
    assert [turn["place"] for turn in data["turns"]] == [None, None, 0, 0]
    assert [turn["forgotten"] for turn in data["turns"]] == [True, False, True, False]
    assert [turn["is_reply"] for turn in data["turns"]] == [False, True, False, False]
    assert data["turns"][3]["corrected"] == "2024-05-07T09:05Z"
    assert [each["label"] for each in data["sections"]] == ["morning", "evening"]
