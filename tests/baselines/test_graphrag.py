"""Communities of a graph, the reports on them, and the reports that are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from mgl.baselines import graphrag
from mgl.baselines.graphrag import (
    GraphRag,
    GraphRagConfig,
    describe,
    find_communities,
    find_spans,
    rank_chunks,
    rank_relations,
)
from mgl.memories.deletion import delete
from mgl.memories.graph.state import EntityGraph, GraphEntity, GraphMention, Relation, make_graph
from mgl.store import Store
from mgl.store.deletion import Redaction
from mgl.types import Conversation, Document, Question, Span, Turn
from tests.baselines.asking import answered, asking, prompts, said, silent

BOOK = Document.from_text(
    "book.txt", "Ann met Bob. Bob met Cyd. Ann met Cyd.\n\nDora met Eve. Eve met Fay. Dora met Fay."
)
CONFIG = GraphRagConfig(chunk_tokens=16, overlap_tokens=0, k=1)
MET = re.compile(r"\[(\d+)\] [^\[]*?(\w+) met (\w+)")


def list_meetings(prompt: str) -> str:
    met = MET.findall(prompt.partition("The text:")[2])
    where = {name: int(src) for src, *ends in met for name in ends}
    entities = [
        {"src": src, "name": name, "type": "person", "description": f"{name} is a person"}
        for name, src in where.items()
    ]
    relations = [
        {"src": int(src), "source": one, "target": other, "description": f"{one} met {other}"}
        for src, one, other in met
    ]
    return said(entities=entities, relations=relations)


def reporting(prompt: str) -> str:
    """Reports are titled by the names that they are about; a gleaning finds a feast."""
    if "List the entities" in prompt:
        return list_meetings(prompt)
    if "still missing" in prompt:
        feast = {"src": 1, "name": "Feast", "type": "event", "description": "a feast"}
        return said(entities=[feast], relations=[])
    if "Write a report" in prompt:
        names = re.findall(r"^(\w+) \(person\)", prompt, re.MULTILINE)
        findings = [{"headline": f"h{n}", "explanation": "e"} for n in range(5)]
        title = f"about {' '.join(names)}" if names else "about parts"
        return said(title=title, impact_rating=5, summary="They met.", findings=findings)
    return answered(prompt)


async def test_the_report_nearest_to_the_question_is_read(store: Store) -> None:
    mine, engine = asking(store, reporting)
    memory = GraphRag(mine, BOOK, (), CONFIG)
    answer = await memory.answer(Question("What about Dora Eve Fay?"))
    asked = prompts(engine)
    stages = ["List the entities", "still missing", "Write a report"]
    assert [sum(words in prompt for prompt in asked) for words in stages] == [2, 2, 2]
    assert "about Dora Eve Fay: They met. - h0: e" in asked[-1]
    assert "Ann" not in asked[-1]
    told = {BOOK.quote(Span.at(BOOK.id, place)) for place in answer.retrieved}
    assert told == {"Dora met Eve.", "Eve met Fay.", "Dora met Fay."}
    findings = "\n".join(f"- h{n}: e" for n in range(5))
    read = f"about Dora Eve Fay: They met.\n{findings}"
    of_report, of_book = await mine.llm.count_tokens([read, BOOK.text])
    assert answer.compaction_ratio == of_report / of_book


async def test_a_gleaning_continues_the_first_call_and_may_name_what_that_listed(
    store: Store,
) -> None:
    def gleaning(prompt: str) -> str:
        if "still missing" in prompt:
            feast = {"src": 2, "source": "Ann", "target": "Bob", "description": "both ate"}
            return said(entities=[], relations=[feast])
        return reporting(prompt)

    mine, engine = asking(store, gleaning)
    memory = GraphRag(mine, Document.from_text("b", "Ann met Bob. They ate."), (), CONFIG)
    await memory.build()
    first, gleaned = engine.requests[:2]
    assert gleaned.messages[0] == first.messages[0]
    assert [message.role for message in gleaned.messages] == ["user", "assistant", "user"]
    relations = [row for row in store.edits(memory.id) if row.op == "relation"]
    assert [row.payload["description"] for row in relations] == ["Ann met Bob", "both ate"]
    assert "Ann - Bob: Ann met Bob. both ate" in prompts(engine)[2]


def graph_of(
    stated: Mapping[str, Sequence[int]], at: Mapping[str, Sequence[int]] | None = None
) -> EntityGraph:
    """Relations ``a|b`` that chunks state, between entities that are in the chunks of ``at``."""

    def mention(chunks: Sequence[int]) -> tuple[GraphMention, ...]:
        return tuple(GraphMention(n, Span("d", n, n + 9)) for n in chunks)

    relations = {
        each: Relation(each, *each.split("|"), "r", mention(chunks))
        for each, chunks in stated.items()
    }
    names = sorted({name for each in stated for name in each.split("|")})
    chunks = {name: mention((at or {}).get(name, ())) for name in names}
    entities = {
        name: GraphEntity(name, name.upper(), "person", "p", chunks[name]) for name in names
    }
    return EntityGraph(entities, relations)


def ring(size: int) -> EntityGraph:
    names = [f"n{place:02}" for place in range(size)]
    pairs = [sorted((names[place], names[(place + 1) % size])) for place in range(size)]
    return graph_of({"|".join(pair): (n,) for n, pair in enumerate(pairs)})


def test_communities_are_divided_level_by_level_and_come_deepest_first() -> None:
    communities = find_communities(ring(24), 4)
    known = {each.id: each for each in communities}
    levels = [each.level for each in communities]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] > levels[-1] == 0
    for each in communities:
        assert (each.parent is None) == (each.level == 0)
        if each.parent is not None:
            assert each.members < known[each.parent].members
            assert known[each.parent].level == each.level - 1
    top = [each.members for each in communities if each.level == 0]
    assert sum(map(len, top)) == len(frozenset().union(*top)) == 24
    assert find_communities(ring(24), 4) == communities
    assert find_communities(EntityGraph(), 4) == []


def test_relations_of_the_highest_degree_come_first_each_after_its_ends() -> None:
    graph = graph_of({each: (n,) for n, each in enumerate(("a|b", "b|c", "c|d", "c|e", "e|f"))})
    # Degrees: a 1, b 2, c 3, d 1, e 2, f 1; f is out, and e's relation with it counts all the same.
    assert describe(graph, frozenset("abcde")) == [
        "B (person): p",
        "C (person): p",
        "B - C: r",
        "E (person): p",
        "C - E: r",
        "D (person): p",
        "C - D: r",
        "A (person): p",
        "A - B: r",
    ]
    assert find_spans(graph, frozenset("bce")) == [Span("d", 1, 10), Span("d", 3, 12)]


def test_a_local_search_ranks_relations_and_chunks() -> None:
    stated = {"a|b": (0,), "b|c": (1, 2), "c|d": (2,), "a|d": (3,), "b|e": (3,)}
    at = {"a": (0, 3), "b": (0, 1, 2), "c": (1, 2), "d": (2, 3), "e": (3,)}
    graph = graph_of(stated, at)
    # Among b and c first; then by the degrees of both ends: a 2 + b 3, b 3 + e 1, c 2 + d 2.
    ranked = [each.id for each in rank_relations(graph, ["c", "b"])]
    assert ranked == ["b|c", "a|b", "b|e", "c|d"]
    # b and d are each related to a and to c; what e is related to is not chosen.
    assert [each.id for each in rank_relations(graph, ["a", "c"])] == ["a|b", "b|c", "a|d", "c|d"]
    # c states two relations in chunk 2; b has none left but chunk 0.
    assert rank_chunks(graph, ["c", "b"]) == [2, 1, 0]


async def test_a_local_search_reads_what_lies_around_the_entities_of_a_question(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphrag, "ENTITIES", 2)
    mine, engine = asking(store, reporting)
    config = CONFIG.model_copy(update={"search": "local", "gleanings": 0, "chunk_tokens": 12})
    answer = await GraphRag(mine, BOOK, (), config).answer(Question("Dora and Eve"))
    last = prompts(engine)[-1]
    assert answer.trace in (("local search from Dora, Eve",), ("local search from Eve, Dora",))
    shown = ["[1] about Dora", "Dora (person): Dora is a person; ", "[3] Dora met Eve."]
    assert [words for words in shown if words not in last] == []
    assert "Dora - Eve: Dora met Eve" in last
    assert "Ann" not in last
    assert [BOOK.quote(Span.at(BOOK.id, place)).strip() for place in answer.retrieved] == [
        "Dora met Eve. Eve met Fay. Dora met Fay."
    ]


async def test_a_community_that_is_too_long_has_its_parts_reports(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphrag, "CONTEXT_TOKENS", 60)
    text = " ".join(f"N{n:02} met N{(n + 1) % 24:02}." for n in range(24))
    config = GraphRagConfig(chunk_tokens=300, overlap_tokens=0, gleanings=0, max_cluster_size=4)
    mine, engine = asking(store, reporting)
    memory = GraphRag(mine, Document.from_text("ring", text), (), config)
    await memory.build()
    asked = [prompt for prompt in prompts(engine) if "Write a report" in prompt]
    reports = [report.text for report in memory.state.reports.values()]
    graph = make_graph(memory.state)
    communities = find_communities(graph, config.max_cluster_size)
    divided = {each.parent for each in communities} - {None}
    assert divided
    for each in communities:
        lines = describe(graph, each.members)
        parts = [part for part in communities if part.parent == each.id]
        if sum(await mine.llm.count_tokens(lines)) <= 60 or not parts:
            continue
        divided.remove(each.id)
        largest = min(parts, key=lambda part: (-len(part.members), part.id))
        (prompt,) = (one for one in asked if reports[communities.index(largest)] in one)
        assert not any(f"{name.upper()} (person)" in prompt for name in largest.members)
    assert not divided


@pytest.mark.parametrize(
    ("words", "marks", "reports"),
    [
        ("List the entities", ("chunks_unread",), 0),
        ("still missing", ("chunks_unread",), 2),
        ("Write a report", ("reports_missing",), 0),
    ],
)
async def test_calls_that_give_nothing_leave_marks(
    store: Store, words: str, marks: tuple[str, ...], reports: int
) -> None:
    mine, _ = asking(store, silent(reporting, words))
    answer = await GraphRag(mine, BOOK, (), CONFIG).answer(Question("Who met Ann?"))
    assert answer.marks == marks
    assert answer.trace[0].startswith(f"nearest of {reports} reports")


async def test_every_turn_is_in_a_chunk_and_reports_go_with_the_turns_they_stand_on(
    store: Store,
) -> None:
    lines = ["Ann met Bob", "Bob met Cyd", "Dora met Eve", "Eve met Fay"]
    talk = Conversation.from_turns(
        "talk", [Turn(f"t{n}", "Hal", f"{x}.") for n, x in enumerate(lines)]
    )
    config = GraphRagConfig(chunk_tokens=20, overlap_tokens=0, k=2)
    mine, engine = asking(store, reporting)
    memory = GraphRag(mine, talk, (), config)
    answer = await memory.answer(Question("Who met Eve?"))
    assert set(answer.retrieved) == {"t0", "t1", "t2", "t3"}
    rows = store.edits(memory.id)
    chunks = [row.span for row in rows if row.op == "chunk" and row.span is not None]
    assert {turn for span in chunks for turn in talk.turns_at(span)} == {0, 1, 2, 3}
    assert {row.turns for row in rows if row.op == "report"} == {(0, 1), (2, 3)}
    assert delete(store, talk.id, Redaction(frozenset({3})))
    assert not any("Fay" in str(row.payload) for row in store.edits(memory.id))
    calls = len(engine.requests)
    again = GraphRag(mine, talk, (), config)
    await again.build()
    assert len(engine.requests) > calls
    titles = {row.payload["title"] for row in store.edits(again.id) if row.op == "report"}
    assert titles == {"about Ann Bob Cyd", "about Dora Eve"}
