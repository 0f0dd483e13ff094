"""The delimiter format: what is rendered is read back, and nothing else is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import ReplyInvalid
from mgl.memories.hgmem import prompts
from mgl.memories.hgmem.delimiters import (
    MARKS,
    MalformedReply,
    parse_concerns,
    parse_evolution,
    parse_merges,
    parse_subquery,
)
from mgl.memories.hgmem.proposals import (
    Concern,
    Concerns,
    Evolution,
    Merges,
    NewPoint,
    PointUpdate,
    ProposedMerge,
)
from mgl.memories.hgmem.state import Stop, Subquery
from mgl.prompt import Prompt
from tests.memories.hgmem.conftest import Ask
from tests.memories.hgmem.telling import (
    INSERTED,
    QUESTION,
    SUFFICES,
    Teller,
    rows_of,
    said,
    state_after,
)

TUPLE, OBJECT, RECORD, DONE = MARKS.values()
POINTS = 7


def plain(text: str) -> bool:
    marks = (TUPLE, OBJECT, RECORD, DONE)
    return text == text.strip() and not any(mark in f"#{text}#" for mark in marks)


texts = (
    st.text(st.sampled_from("ab Z,()[]<>|&#\n.'\"1é:") | st.characters(codec="utf-8"), min_size=1)
    .map(str.strip)
    .filter(lambda text: bool(text) and plain(text) and text != "<None>")
)
indices = st.integers(0, POINTS - 1)
objects = st.lists(texts, min_size=2, max_size=8)
evolutions = st.builds(
    Evolution,
    inserted=st.lists(st.builds(NewPoint, objects=objects, description=texts), max_size=4),
    updated=st.lists(
        st.builds(PointUpdate, point=indices, objects=objects, description=texts), max_size=4
    ),
)
together = st.lists(indices, min_size=2, unique=True).map(sorted)
merges = st.builds(
    Merges,
    merges=st.lists(st.builds(ProposedMerge, points=together, description=texts), max_size=4),
)
concerns = st.one_of(
    st.just(Concerns(judgement="1")),
    st.builds(
        Concerns,
        judgement=st.just("2.1"),
        concerns=st.lists(st.builds(Concern, point=indices, concern=texts), max_size=4),
    ),
    st.builds(
        Concerns,
        judgement=st.just("2.2"),
        concerns=st.lists(st.builds(Concern, point=st.none(), concern=texts), max_size=4),
    ),
)


def listed(records: list[str]) -> str:
    return "".join(f"{record}{RECORD}\n" for record in records) + DONE if records else "<None>"


def point(each: NewPoint | PointUpdate) -> str:
    return f"(point{TUPLE}{OBJECT.join(each.objects)}{TUPLE}{each.description})"


def rendered(proposal: Evolution | Merges | Concerns) -> str:
    if isinstance(proposal, Evolution):
        inserted = listed([point(each) for each in proposal.inserted])
        updated = listed([f"{each.point},{point(each)}" for each in proposal.updated])
        return f"[Inserted Memory Points]:\n{inserted}\n\n[Updated Memory Points]:\n{updated}"
    if isinstance(proposal, Merges):
        records = [
            f"({','.join(map(str, each.points))}{TUPLE}{each.description})"
            for each in proposal.merges
        ]
        return f"[Points_to_Merge]:\n{listed(records)}"
    near = [f"{each.point}{TUPLE}" if each.point is not None else "" for each in proposal.concerns]
    records = [f"{at}{each.concern}" for at, each in zip(near, proposal.concerns, strict=True)]
    return f"[Judgement]: {proposal.judgement}\n[Concerns]: {listed(records)}"


@given(evolutions, merges, concerns)
def test_what_is_rendered_is_read_back(
    evolution: Evolution, merging: Merges, concern: Concerns
) -> None:
    assert parse_evolution(rendered(evolution), POINTS) == evolution
    assert parse_merges(rendered(merging), POINTS) == merging
    assert parse_concerns(rendered(concern), POINTS) == concern


@given(evolutions, merges, concerns, st.data())
def test_a_reply_that_was_cut_off_is_malformed(
    evolution: Evolution, merging: Merges, concern: Concerns, data: st.DataObject
) -> None:
    """A mark of completion that is missing is never taken for the end of a list."""
    for proposal, parse in (
        (evolution, parse_evolution),
        (merging, parse_merges),
        (concern, parse_concerns),
    ):
        whole = rendered(proposal)
        cut = data.draw(st.integers(0, len(whole) - 1))
        with pytest.raises(MalformedReply):
            parse(whole[:cut], POINTS)


@given(st.text(), st.integers(0, 3))
def test_any_text_is_read_or_malformed(text: str, points: int) -> None:
    for parse in (parse_evolution, parse_merges, parse_concerns):
        for reply in (text, f"[Judgement]: 2.1\n[Concerns]:\n{text}{DONE}"):
            with suppress(MalformedReply):
                parse(reply, points)


def example(prompt: Prompt, after: str = "Output Format-#####\n") -> str:
    """What a prompt shows as an example, with the delimiters of the released code."""
    text = prompt.render(**{name: MARKS.get(name, "-") for name in prompt.variables})
    return text.partition(after)[2].partition("\n#####")[0]


def test_the_papers_example_of_an_evolution() -> None:
    read = parse_evolution(example(prompts.EVOLVE), 3)
    assert [each.objects for each in read.inserted] == [
        ["Alex", "Jordan", "Cruz"],
        ["Sam Rivera", "Alex"],
    ]
    assert read.inserted[0].description.startswith("Alex and Jordan's shared commitment")
    assert read.inserted[0].description.endswith("expressed by Alex and Jordan.")
    assert [(each.point, each.objects) for each in read.updated] == [
        (0, ["Steve Jobs", "San Francisco, California", "Paul", "Clara Jobs"]),
        (
            2,
            ["Pricing Strategy", "Premium Pricing", "Freemium Model", "Tiered Pricing Structures"],
        ),
    ]
    assert '"cult following"' in read.updated[1].description
    with pytest.raises(MalformedReply):
        parse_evolution(example(prompts.EVOLVE), 2)


def test_the_papers_example_of_merges() -> None:
    read = parse_merges(example(prompts.MERGE), 6)
    assert [(each.points, each.description) for each in read.merges] == [
        ([1, 2], "<new_description>"),
        ([2, 4, 5], "<new_description>"),
    ]
    with pytest.raises(MalformedReply):
        parse_merges(example(prompts.MERGE), 5)


def test_the_papers_examples_of_concerns() -> None:
    def read(case: str) -> list[tuple[int | None, str]]:
        shown = example(prompts.CONCERNS, f"for Case {case}-#####\n")
        found = parse_concerns(shown, 3)
        assert found.judgement == case
        return [(each.point, each.concern) for each in found.concerns]

    assert read("1") == []
    assert read("2.1") == [(0, "your_concern_1"), (2, "your_concern_2"), (2, "your_concern_3")]
    assert read("2.2") == [(None, f"your_concern_{number}") for number in (1, 2, 3)]


def test_the_last_delimiter_and_the_mark_after_none_may_be_missing() -> None:
    some = f"(point{TUPLE}a{OBJECT}b{TUPLE}c){DONE}"
    read = parse_evolution(
        f"[Inserted Memory Points]:\n{some}\n[Updated Memory Points]: <None>\n{DONE}\n", 0
    )
    assert read == Evolution(inserted=[NewPoint(objects=["a", "b"], description="c")])
    assert parse_merges(f"[Points_to_Merge]: <None>{DONE}", 0) == Merges()
    assert parse_concerns("[Judgement]: 2.2\n[Concerns]: <None>", 0) == Concerns(judgement="2.2")


GOOD = f"(point{TUPLE}a{OBJECT}b{TUPLE}c)"
NOTHING = "[Inserted Memory Points]: <None>"
NEITHER = "[Judgement]: 2.2\n[Concerns]:"


NO_POINTS = (
    GOOD[1:],
    GOOD[:-1],
    GOOD.replace("point", "entity"),
    f"(point{TUPLE}a{OBJECT}b)",
    f"(point{TUPLE}a{OBJECT}{OBJECT}b{TUPLE}c)",
    f"(point{TUPLE}{TUPLE}c)",
    f"(point{TUPLE}a{OBJECT}b{TUPLE} )",
    f"(point{TUPLE}a{TUPLE}c)",
    f"{GOOD}{RECORD}{RECORD}",
    f"{RECORD}{GOOD}",
    "",
    f"0,{GOOD}",
)
NO_UPDATES = ("", f"{GOOD}{DONE}", f"5,{GOOD}{DONE}", f"٣,{GOOD}{DONE}", "<None>\nDone.")
NO_INDICES = ("1", "1,1", "1,x", "1,-2", "1,", "1,99999999999999999999")
NO_CONCERNS = (
    "[Judgement]: 3\n[Concerns]: <None>",
    "[Judgement]: 2.1.\n[Concerns]: <None>",
    f"[Judgement]: 1\n[Concerns]: what?{DONE}",
    f"[Judgement]: 2.1\n[Concerns]: what?{DONE}",
    f"[Judgement]: 2.1\n[Concerns]: 0{TUPLE}{DONE}",
    f"[Judgement]: 2.1\n[Concerns]: 9{TUPLE}what?{DONE}",
    f"{NEITHER} 0{TUPLE}what?{DONE}",
    f"{NEITHER} what?",
    "[Concerns]: <None>",
)
INSERTED_ALONE = f"[Inserted Memory Points]:\n{{}}{DONE}\n[Updated Memory Points]: <None>"
UPDATED_ALONE = f"{NOTHING}\n[Updated Memory Points]: {{}}"
MERGED = f"[Points_to_Merge]:\n({{}}{TUPLE}one){RECORD}\n{DONE}"


@pytest.mark.parametrize(
    ("parse", "reply"),
    [
        *((parse_evolution, INSERTED_ALONE.format(point)) for point in NO_POINTS),
        *((parse_evolution, UPDATED_ALONE.format(update)) for update in NO_UPDATES),
        *((parse_merges, MERGED.format(indices)) for indices in NO_INDICES),
        *((parse_concerns, reply) for reply in NO_CONCERNS),
    ],
)
def test_what_the_figures_do_not_show_is_malformed(
    parse: Callable[[str, int], object], reply: str
) -> None:
    with pytest.raises(MalformedReply):
        parse(reply, 5)


@pytest.mark.parametrize("reply", ["", "[Subquery]: \n", "One?\nTwo?"])
def test_what_is_no_subquery(reply: str) -> None:
    with pytest.raises(MalformedReply):
        parse_subquery(reply)


# Whole questions


async def test_a_step_of_the_paper_in_its_own_format(memory_for: Ask) -> None:
    teller = Teller(
        evolve=[INSERTED],
        concerns=[f"{NEITHER}\nWho else?{RECORD}\n{DONE}", SUFFICES],
        subquery=["[Subquery]: Who else was there?"],
    )
    memory = memory_for(teller.engine, format="delimiters")
    await memory.answer(QUESTION)
    (point,) = state_after(memory, 1).points.values()
    assert point.vertices == {"issus", "xodar"}
    assert said(memory, Subquery)[1].text == "Who else was there?"
    assert DONE in teller.prompts("evolve")[0]


@pytest.mark.parametrize(
    ("compat", "asked", "stop"), [("released_code", 6, "failed"), ("paper", 3, "sufficient")]
)
async def test_a_reply_that_cannot_be_read_is_asked_for_again_or_restarts_the_question(
    memory_for: Ask, compat: str, asked: int, stop: str
) -> None:
    teller = Teller(evolve=["nonsense"], concerns=[SUFFICES])
    memory = memory_for(teller.engine, format="delimiters", compat=compat)
    await memory.build()
    assert len(teller.prompts("evolve")) == asked
    assert said(memory, Stop) == [Stop(stop)]


async def test_the_released_code_restarts_where_json_cannot_be_read_and_may_be_asked_again(
    memory_for: Ask,
) -> None:
    memory = memory_for(Teller(evolve=["nonsense"]).engine, compat="released_code")
    with pytest.raises(ReplyInvalid):
        await memory.answer(QUESTION)
    assert sum(row.op == "restart" for row in rows_of(memory)) == 5
    answer = "He lost."
    again = memory_for(Teller(answer=[answer]).engine, compat="released_code")
    assert (await again.answer(QUESTION)).text == "He lost."


async def test_no_more_concerns_are_followed_than_were_asked_for(memory_for: Ask) -> None:
    listed = RECORD.join(f"Concern {number}?" for number in range(5))
    teller = Teller(
        evolve=[INSERTED],
        concerns=[f"{NEITHER}\n{listed}{RECORD}\n{DONE}", SUFFICES],
        subquery=[f"Who was it, {number}?" for number in range(5)],
    )
    memory = memory_for(teller.engine, format="delimiters", concerns=2)
    await memory.build()
    assert len(said(memory, Subquery)) == 1 + 2
