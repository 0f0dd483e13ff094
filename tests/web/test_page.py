from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from html.parser import HTMLParser

from mgl.memories.view import GraphView
from mgl.types import Document
from mgl.web.export import to_html

VOID = {"meta", "input", "link", "img", "br", "base"}


class _Page(HTMLParser):
    """The elements, and the text of scripts and styles, as an HTML parser meets them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.raw: dict[str, str] = {}
        self.words = ""
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
        else:
            self.words += data

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


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
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"
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
            assert (attributes.get("href") or "#").startswith("#")
            assert tag not in ("link", "img", "iframe", "object", "base")
        assert "url(http" not in page.raw["style"]
        assert "@import" not in page.raw["style"]


def test_the_data_names_nodes_edges_and_what_is_cited(view: GraphView) -> None:
    data = json.loads(_Page(to_html(view)).raw["application/json"])
    assert [each["id"] for each in data["nodes"]] == ["n1", "n2", "n3", "n4"]
    assert data["nodes"][3]["label"] == "n4"
    assert data["cited"] == [[2]]
    assert data["steps"] == 2
    edge = data["edges"][0]
    assert (edge["source"], edge["target"], edge["relation"]) == (0, 1, "meets")
    for each in data["nodes"] + data["edges"]:
        assert each["quote"] == view.document.text[each["start"] : each["end"]]


def test_questions_answers_and_citations_are_there_without_scripts(view: GraphView) -> None:
    page = _Page(to_html(view))
    for words in (
        *view.questions,
        "Ann did.",
        "high confidence",
        "prompt 50.0% as long as the text",
        "Not answered yet.",
        "read the graph",
        "a_mark",
        "Two, ",
        "gave it back.",
    ):
        assert words in page.words
    chips = [each["href"] for each in page.attributes("a") if each.get("class") == "chip"]
    assert chips == ["#node=n3"]


def test_a_view_without_nodes_or_questions_is_a_page(view: GraphView) -> None:
    empty = replace(
        view,
        document=Document.from_text("e", ""),
        questions=(),
        nodes=(),
        edges=(),
        answers=(),
        steps=0,
    )
    page = _Page(to_html(empty))
    assert "The graph is empty" in page.words
    assert "No question was asked" in page.words


def test_a_hyperedge_is_counted_once_and_what_is_gone_not_at_all(hypergraph: GraphView) -> None:
    words = _Page(to_html(hypergraph)).words
    assert "4 nodes, 2 hyperedges, 1 edge" in words
    assert "4 nodes, 2 hyperedges" in _Page(to_html(replace(hypergraph, questions=()))).words


def test_a_hierarchy_is_apart_from_the_graph(hierarchy: GraphView) -> None:
    page = to_html(hierarchy)
    assert "4 nodes, 4 categories, 1 edge" in page
    data = json.loads(_Page(page).raw["application/json"])
    ids = [node["id"] for node in data["nodes"]]
    assert [edge["id"] for edge in data["edges"]] == ["knows"]
    held = {(ids[source], ids[target], step) for source, target, step, _ in data["holds"]}
    assert held == {
        (edge.source, edge.target, edge.step) for edge in hierarchy.edges if edge.id != "knows"
    }
    assert {node["id"] for node in data["nodes"] if "x" in node} == {"ann", "bo", "key", "may"}
    paths = [[[ids[each] for each in path] for path in paths] for paths in data["paths"]]
    assert paths == [[["c4", "c1", "bo"]], [["c4", "c3", "c2", "key"]]]


def test_what_no_step_shows_is_not_on_the_page(hypergraph: GraphView) -> None:
    page = to_html(hypergraph)
    assert "Bo lost it." in page
    assert "Passed over." not in page
