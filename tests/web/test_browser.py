"""The page in a real browser: opened from disk, and driven as a reader would drive it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from mgl.memories.view import GraphView, ShownTalk, ViewEdge, ViewNode
from mgl.store.records import EditRecord
from mgl.store.turns import Correction
from mgl.types import Answer, Conversation, Document, Turn
from mgl.web.escape import visible
from mgl.web.export import to_html
from tests.web.browser import Drive, dumped, shown
from tests.web.tab import Tab

pytestmark = pytest.mark.browser


def test_a_node_named_in_the_address_is_open_with_its_passage(
    tab: Tab, tmp_path: Path, view: GraphView
) -> None:
    dom = dumped(tab, tmp_path, to_html(view), "#node=n3")
    assert 'data-ready="true"' in dom
    assert re.search(r'<h2 dir="auto">The key is found</h2>', dom)
    quoted = re.search(r"<blockquote[^>]*>(.*?)</blockquote>", dom, re.S)
    assert quoted is not None
    assert quoted.group(1).replace("&amp;", "&").split() == (
        view.document.quote(view.nodes[2].span).split()
    )
    current = re.search(r'<mark class="([^"]*)"[^>]*aria-current="true"[^>]*>([^<]*)', dom)
    assert current is not None
    assert "on" in current.group(1).split()
    assert current.group(2).startswith("Ann found the key")


def test_hostile_text_runs_nothing(tab: Tab, tmp_path: Path, hostile: GraphView) -> None:
    address = "#node=" + quote(visible(hostile.nodes[1].id), safe="")
    dom = dumped(tab, tmp_path, to_html(hostile), address)
    assert 'data-ready="true"' in dom
    title = re.search(r"<title>(.*?)</title>", dom, re.S)
    assert title is not None
    assert title.group(1).startswith("&lt;b&gt;bold")
    assert "<img" not in dom
    assert len(re.findall(r"<script\b", dom)) == 2
    assert re.search(r'<h2 dir="auto">&lt;/title&gt;&lt;svg onload=1&gt;</h2>', dom)


def test_clicks_keys_and_controls(drive: Drive, view: GraphView) -> None:
    said = drive(
        to_html(view),
        """
        const said = {};
        const felt = feel();
        said.felt = [...felt.keys()].sort();
        click(felt.get("Ann")[0]);
        said.clicked = [title(), location.hash];
        key(graph, "ArrowRight");
        said.heard = one("#said").textContent;
        key(graph, "Enter");
        said.entered = title();
        const shared = all("mark").find((each) => each.textContent === "Bo");
        said.shared = [];
        for (let turn = 0; turn < 4; turn++) {
          shared.click();
          said.shared.push(title());
        }
        one(".chip").click();
        await rest(60);
        said.chip = [title(), inSight(one("mark.on"))];
        one("#detail ul a[data-ref=e2]").click();
        said.edge = [title(), one("#detail blockquote").textContent.slice(0, 9)];
        key(document.body, "Escape");
        said.closed = all("#detail .index li").length;
        said.cited = all("#detail .index li.cited").map((each) => each.firstChild.textContent);
        const nodes = async () => (await rest(60), one("#stage").dataset.shown);
        slide("0");
        said.steps = [await nodes(), all("mark:not(.off)").length < all("mark").length];
        slide("1");
        said.steps.push(await nodes());
        const kinds = all("#kinds button");
        kinds[0].click();
        said.kinds = [kinds.length, await nodes()];
        kinds[0].click();
        const places = one("#places");
        places.value = "1";
        places.dispatchEvent(new Event("change"));
        said.places = [[...places.options].map((each) => each.label), await nodes()];
        places.value = "";
        places.dispatchEvent(new Event("change"));
        one("#search").value = "KEY";
        one("#search").dispatchEvent(new Event("input"));
        said.found = [one("#found").textContent, all("#detail .index li").length];
        key(one("#search"), "Enter");
        said.jumped = title();
        return said;
        """,
    )
    nodes = ["Ann", "Bo", "The key is found", "n4"]
    edges = [
        "Ann — helps → Bo",
        "Ann — meets → Bo",
        "The key is found — recalls → The key is found",
    ]
    assert said["felt"] == sorted(["", *nodes, *edges])
    assert said["clicked"] == ["Ann", "#node=n1"]
    assert said["heard"] == "entity: Bo, 2 edges"
    assert said["entered"] == "Bo"
    assert sorted(set(said["shared"])) == ["Ann", "Bo", "meets"]
    assert said["chip"] == ["The key is found", True]
    assert said["edge"] == ["recalls", "silver ke"]
    assert said["cited"] == ["The key is found"]
    assert said["closed"] == 4
    assert said["steps"] == ["2", True, "4"]
    assert said["kinds"] == [3, "2"]
    assert said["places"] == [["everywhere", "One", "Two"], "2"]
    assert said["found"] == ["1 of 4 nodes, 2 in the text", 1]
    assert said["jumped"] == "The key is found"


def test_what_was_asked_stands_above(tab: Tab, tmp_path: Path, view: GraphView) -> None:
    dom = dumped(tab, tmp_path, to_html(view))
    shown = re.sub(r"<[^>]*>", " ", dom.partition("<header>")[2].partition("</header>")[0])
    for words in (
        *view.questions,
        "Ann did.",
        "high confidence",
        "the first prompt had 50% of the text's tokens",
        "Not answered yet.",
        "read the graph",
        "a_mark",
        "Two, ",
        "4 nodes, 3 edges",
    ):
        assert words in shown
    assert "Ask this memory" in dom
    assert '<form id="ask" hidden' in dom


def test_a_passage_that_no_node_stands_on_is_marked_by_its_characters(drive: Drive) -> None:
    """Also behind signs that take two units of a script's strings."""
    text = "👩 said: 👨‍👩‍👧 go.\n\nAnn 👩 went 👩 home 👩.\n"
    document = Document.from_text("t", text)
    start = text.index("went")
    span = document.span(start, text.index("e 👩.") + 1)
    answer = Answer("Who?", "Ann.", None, (document.cite("turn 7", span),))
    nodes = (ViewNode("n", "entity", "She", "", document.span(0, 1), 0),)
    said = drive(
        to_html(
            GraphView("m", "gam", "tiny", document, (), 1, nodes, (), (answer,)),
        ),
        """
        one(".chip").click();
        const [range] = [...CSS.highlights.get("passage")];
        return [one(".chip").textContent, String(range)];
        """,
    )
    assert said == [f"1 turn 7 {start}–{span.end}", "went 👩 home"]


def test_the_log_says_what_became_of_each_edit(drive: Drive, view: GraphView) -> None:
    spans = [node.span for node in view.nodes]
    edits = [
        EditRecord(0, "add_node", {"id": "n1", "label": "Ann"}, "applied", None, spans[1]),
        EditRecord(1, "add_node", {"id": "n9"}, "rejected", "quote_missing", call_key="k"),
        *(EditRecord(2, "add_node", {"id": f"m{n}"}, "applied") for n in range(150)),
    ]
    said = drive(
        to_html(view, edits),
        """
        const said = {};
        const rows = () => all("#log-rows > li:not(.more)");
        one("#views [value=log]").click();
        await rest(60);
        said.all = [one("#log-count").textContent, rows().length, one("#stage").hidden];
        one(".more button").click();
        said.more = rows().length;
        rows()[0].querySelector("summary").click();
        await rest(60);
        rows()[0].querySelector(".acts button:last-of-type").click();
        said.node = location.hash;
        one("#log-which").value = "rejected";
        one("#log-which").dispatchEvent(new Event("change"));
        rows()[0].querySelector("summary").click();
        await rest(60);
        said.rejected = [rows().length, rows()[0].textContent];
        one("#log-which").value = "edits";
        one("#log-which").dispatchEvent(new Event("change"));
        one("#search").value = "m149";
        one("#search").dispatchEvent(new Event("input"));
        said.found = one("#log-count").textContent;
        return said;
        """,
    )
    assert said["all"] == ["152 edits", 100, True]
    assert said["more"] == 152
    assert said["node"] == "#node=n1"
    (count, text) = said["rejected"]
    assert count == 1
    assert "Rejected: quote_missing" in text
    assert "The call is not in this file." in text
    assert said["found"] == "1 edit"


def test_a_page_opens_at_what_the_answer_in_sight_cites(drive: Drive, view: GraphView) -> None:
    """Far down in the text; another answer that is opened shows its own passage."""
    text = view.document.text + "Then it rained.\n\n" * 400 + "At last the sun rose.\n"
    document = Document.from_text("story.txt", text)
    sun, rain = text.index("the sun"), text.index("Then")
    answers = tuple(
        Answer(asked, "So.", None, (document.cite("x", document.span(start, start + 7)),))
        for asked, start in (("When did it rain?", rain), ("What rose?", sun))
    )
    said = drive(
        to_html(replace(view, document=document, nodes=(), edges=(), answers=answers)),
        """
        const cited = () => [...CSS.highlights.get("passage")][0];
        await rest(200);
        const said = { opened: [String(cited()), inSight(cited())] };
        one(".asked:not([open]) summary").click();
        await rest(200);
        said.other = [String(cited()), inSight(cited())];
        return said;
        """,
    )
    assert said == {"opened": ["the sun", True], "other": ["Then it", True]}


def test_where_the_graph_says_little_the_contents_are_shown(drive: Drive, view: GraphView) -> None:
    few = replace(view, nodes=view.nodes[:1], edges=())
    said = drive(
        to_html(few),
        """
        const rows = all("#timeline > ol > li").map((each) => each.innerText.replace(/\\s+/g, " "));
        const view = one("#views [value=timeline]").textContent;
        const said = { rows, view, stage: one("#stage").hidden };
        one("#timeline a").click();
        said.node = [title(), one("#detail").hidden];
        one("#views [value=graph]").click();
        await rest(100);
        said.graph = one("#graph").width > 0;
        return said;
        """,
    )
    assert said["rows"] == [
        "One 1 node Bo “CHAPTER” cited for “Who found the key?”",
        "Two “Ann found the key & gave it back. They married in May.” "
        "cited for “Who found the key?”",
    ]
    assert (said["stage"], said["view"]) == (True, "Contents")
    assert said["node"] == ["Bo", False]
    assert said["graph"]


def test_each_turn_has_its_time_beside_it(drive: Drive) -> None:
    at = datetime.fromisoformat("2024-05-06T09:05+05:00")
    turns = [Turn("1", "Ann", "Hi.\nI moved.", at, "s"), Turn("2", "Bo", "Where?", None, "s")]
    talk = Conversation.from_turns("talk", turns)
    document = talk.transcript
    cited = document.cite("2", document.span(document.text.index("Where"), len(document.text) - 1))
    answer = Answer("What did Bo ask?", "Where.", None, (cited,))
    view = GraphView("m", "gam", "tiny", document, (), 2, (), (), (answer,))
    said = drive(
        to_html(view, talk=ShownTalk(talk)),
        """
        const times = all("#text time").map((each) => [each.textContent, each.title]);
        return [times, String([...CSS.highlights.get("passage")][0]), one(".by-hand") === null];
        """,
    )
    assert said == [[["09:05", "Monday, 6 May 2024 at 09:05"]], "Where?", True]


def test_a_corrected_turn_stands_in_its_place(tab: Tab, tmp_path: Path) -> None:
    """With all its lines, found by its characters; the selector says which session is in sight."""
    day = datetime.fromisoformat("2024-05-06T09:05+00:00")
    rest = [Turn(f"{n}", "Bo", f"Line {n}.\n" * 6, day, "evening") for n in range(3, 30)]
    turns = [
        Turn("1", "Ann", "█" * 9, day, "morning"),
        Turn("2", "Bo", "And then?", day, "morning"),
        *rest,
        Turn("30", "Ann", "It is Moon.\nNot Star.", day, "morning"),
        Turn("31", "Bo", "Good night.", day, "evening"),
    ]
    talk = Conversation.from_turns("talk", turns)
    told = ShownTalk(talk, frozenset({0}), {29: Correction(0, "2024-05-07T10:00:00Z")})
    document, span = talk.transcript, talk.span(29)
    node = ViewNode("n1", "topic", "Moon", "The horse.", span, 3)
    view = GraphView("m", "gam", "tiny", document, (), 4, (node,), ())
    at = f"#at={span.start}-{span.end}"
    shown(tab, tmp_path, to_html(view, talk=told), at, size=(1280, 800))
    lines = "[...document.querySelectorAll('#text p')].map((e) => e.textContent)"
    assert tab.run(lines)[:3] == ["Ann: It is Moon.", "Not Star.", "Bo: And then?"]
    assert tab.run(lines)[-1] == "Bo: Good night."
    passage = "String([...CSS.highlights.get('passage')][0])"
    assert tab.run(passage).split() == "It is Moon. Not Star.".split()
    assert tab.run("document.querySelector('.corrected time').dateTime") == "2024-05-07T10:00:00Z"
    heads = tab.run("[...document.querySelectorAll('#text .section')].map((e) => e.textContent)")
    assert [each.split(",")[0] for each in heads] == ["morning", "evening"]
    place = "document.querySelector('#sections').selectedOptions[0].textContent"
    assert tab.run(place).startswith("morning")
    last = talk.span(30)
    tab.run(f"location.hash = '#at={last.start}-{last.end}'")
    tab.wait(f"{place}.startsWith('evening')")
    assert tab.run(passage) == "Good night."


def test_the_text_is_searched(drive: Drive, view: GraphView) -> None:
    """Across the edges of marks; hits are listed, and shown one after the other."""
    said = drive(
        to_html(view),
        """
        const look = (words) => {
          one("#search").value = words;
          one("#search").dispatchEvent(new Event("input"));
          return one("#found").textContent;
        };
        const passage = () => String([...CSS.highlights.get("passage")][0]);
        const said = { found: look(" BO "), hits: all(".hit").map((each) => each.textContent) };
        said.marked = [...CSS.highlights.get("hits")].map(String);
        all(".hit")[2].click();
        said.clicked = passage();
        look("harbour. bo");
        key(one("#search"), "Enter");
        said.entered = passage();
        look("");
        said.left = [CSS.highlights.has("hits"), all(".hit").length];
        return said;
        """,
    )
    assert said["found"] == "1 of 4 nodes, 3 in the text"
    assert "…CHAPTER ONE\n\nAnn met Bo at the harbour." in said["hits"][0]
    assert said["marked"] == ["Bo", "bo", "Bo"]
    assert said["clicked"] == "Bo"
    assert said["entered"] == "harbour. Bo"
    assert said["left"] == [False, 0]


def test_a_letter_that_lower_case_makes_longer_hides_nothing(drive: Drive, view: GraphView) -> None:
    """The capital I with a dot becomes two characters, and all that follows would move."""
    document = Document.from_text("story.txt", "Ann left İzmir. BO stayed in İzmir.")
    said = drive(
        to_html(replace(view, document=document, nodes=(), edges=(), answers=())),
        """
        const look = (words) => {
          one("#search").value = words;
          one("#search").dispatchEvent(new Event("input"));
          return [...(CSS.highlights.get("hits") ?? [])].map(String);
        };
        return ["bo stayed", "İzmir", "izmir. b"].map(look);
        """,
    )
    assert said == [["BO stayed"], ["İzmir", "İzmir"], ["İzmir. B"]]


def test_a_crowded_graph_is_thinned(drive: Drive, view: GraphView) -> None:
    """Without its hub; only a node with its neighbours, and theirs; what was found is fitted."""
    whole = view.document.span(0, 4)
    nodes = tuple(ViewNode(f"n{n}", "entity", f"N{n}", "", whole, 0) for n in range(40))
    spokes = tuple(ViewEdge(f"s{n}", "n0", f"n{n}", "near", whole, 0) for n in range(1, 40))
    chain = tuple(ViewEdge(f"c{n}", f"n{n}", f"n{n + 1}", "next", whole, 0) for n in range(1, 9))
    many = tuple(ViewEdge(f"m{n}", "n30", "n31", f"is {n}", whole, 0) for n in range(6))
    said = drive(
        to_html(replace(view, nodes=nodes, edges=(*spokes, *chain, *many))),
        """
        const count = async () => (await rest(60), Number(one("#stage").dataset.shown));
        const said = { felt: [...feel().keys()] };
        said.hub = [one("#hubs").textContent, one("#hubs").hidden];
        one("#hubs").click();
        said.without = await count();
        one("#hubs").click();
        location.hash = "#node=n3";
        await rest(60);
        one(".near").click();
        said.only = [await count(), one("#show-all").hidden];
        location.hash = "#node=n2";
        await rest(60);
        one(".near").click();
        said.more = await count();
        one("#show-all").click();
        said.all = await count();
        one("#search").value = "N39";
        one("#search").dispatchEvent(new Event("input"));
        one("#zoom-fit").click();
        await rest(60);
        said.fitted = [...feel().entries()].find(([name]) => name === "N39")[1][0];
        location.hash = "#edge=m2";
        await rest(60);
        said.beside = all("#detail .row li").map((each) => each.textContent).slice(0, 5);
        return said;
        """,
        size=(1440, 900),
    )
    assert "N30 — 6 relations → N31" in said["felt"]
    assert not [name for name in said["felt"] if " — is " in name]
    assert said["hub"] == ["hide 1 hub", False]
    assert said["without"] == 39
    assert said["only"] == [4, False]
    assert said["more"] == 5
    assert said["all"] == 40
    assert abs(said["fitted"]["clientX"] - 410) < 60
    assert said["beside"] == ["is 0", "is 1", "is 3", "is 4", "is 5"]


def test_the_log_says_edits_in_words_and_shows_one_as_it_is_stored(
    drive: Drive, view: GraphView
) -> None:
    fact = {"id": "f1", "text": "Ann rides", "ends": ["e1", "e2"], "at": {"day": 3, "hour": None}}
    reading = {"question": "Who rides?", "spans": [[0, 3], {"start": 5, "end": 9}]}
    edits = [
        EditRecord(0, "add_fact", {"fact": fact, "kept": False, "span": [0, 3]}, "applied"),
        EditRecord(1, "freeze", {"topic": "t1", "frozen": False}, "applied"),
        EditRecord(2, "reading", reading, "applied"),
    ]
    said = drive(
        to_html(view, edits),
        """
        one("#views [value=log]").click();
        await rest(60);
        const rows = all("#log-rows > li > details");
        const said = { heads: rows.map((each) => each.firstChild.textContent) };
        rows[0].open = true;
        await rest(60);
        rows[0].querySelector("details").open = true;
        await rest(60);
        said.stored = JSON.parse(rows[0].querySelector("pre").textContent);
        return said;
        """,
    )
    words = "fact id f1, text Ann rides, ends e1, e2, at day 3"
    assert said["heads"] == [
        f"step 1 add fact applied {words}",
        "step 2 unfreeze applied topic t1",
        "step 3 reading applied question Who rides? · spans 0–3, 5–9",
    ]
    assert said["stored"] == edits[0].payload


def test_the_log_folds_turns_and_shows_what_changed(drive: Drive, view: GraphView) -> None:
    old, new = "Ann has a brown horse.", "Ann has a white horse now."
    edits = [
        *(EditRecord(n, "append", {"turn": n}, "applied") for n in range(5)),
        EditRecord(5, "consolidate", {"topic": {"id": "t1", "summary": old}}, "applied"),
        EditRecord(6, "append", {"turn": 5}, "applied"),
        EditRecord(7, "rewrite", {"topic": "t1", "summary": "Bo."}, "rejected"),
        EditRecord(8, "rewrite", {"topic": "t1", "summary": new}, "applied"),
    ]
    said = drive(
        to_html(view, edits),
        """
        one("#views [value=log]").click();
        await rest(60);
        const rows = () => all("#log-rows > li");
        const said = { rows: rows().map((each) => each.querySelector("summary").textContent) };
        const open = async (row) => (row.querySelector("summary").click(), await rest(60));
        await open(rows()[0]);
        said.run = all(".run > li").length;
        await open(rows().at(-1));
        const words = (name) => all(`#log-rows ${name}`).map((each) => each.textContent);
        said.diff = [one(".diff").textContent, words("del"), words("ins")];
        said.undo = all(".acts button").some((each) => each.textContent === "Undo");
        return said;
        """,
    )
    assert len(said["rows"]) == 5
    assert said["rows"][0] == "steps 1 to 5 append 5 edits"
    assert said["run"] == 5
    text, gone, come = said["diff"]
    assert text == "summary: Ann has a brown horse. white horse now. "
    assert (gone, come) == (["brown horse."], ["white horse now."])
    assert not said["undo"]
