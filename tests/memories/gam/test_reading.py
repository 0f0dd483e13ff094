"""From a question to events: anchors and neighbours (Eq. 9), candidates (Eq. 10), rank (Eq. 11)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.memories.gam import Gam
from mgl.memories.gam.state import Append, Consolidate, GamState, Link, Marks, Topic, apply
from mgl.retrieval.base import Reranker
from mgl.retrieval.cues import remove_names
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.rerankers import ContextReranker, IdentityReranker, SimilarityReranker
from mgl.types import Conversation, Question, Turn
from tests.memories.gam.conftest import replay
from tests.memories.gam.reading import MAY, PLAIN, Judging, consolidated, reading_of, spoken

# Eq. 9


async def test_anchors_are_the_topics_most_like_the_question_and_their_neighbours_either_way() -> (
    None
):
    state = consolidated([1] * 6, [("t4", "t1"), ("t2", "t5"), ("t6", "t5"), ("t3", "t6")])
    likeness = {"about 2": 0.9, "about 4": 0.8, "about 3": 0.7}
    found = await reading_of(state, likeness=likeness, anchors=2)
    assert found.anchors == ("t2", "t4")
    assert set(found.expanded) == {"t1", "t5"}
    assert {event.topic for event in found.events} == {"t1", "t2", "t4", "t5"}


async def test_a_topic_without_a_summary_is_found_by_what_was_said_in_it() -> None:
    state = replay([Append(0), Append(1), Consolidate(Topic("t1", "", (), (0, 1)))])
    state = apply(apply(state, Append(2)), Consolidate(Topic("t2", "about 2", (), (2,))))
    said = "Bo: said 0\nAnn: said 1"
    found = await reading_of(state, likeness={said: 0.9, "about 2": 0.1}, anchors=1)
    assert found.anchors == ("t1",)


async def test_anchored_by_event_a_topic_is_as_like_as_the_best_that_was_said_in_it() -> None:
    """Also where the events most like the question are all of one topic."""
    state = consolidated([2, 40, 2])
    likeness = {"about 1": 0.9, "Ann: said 3": 0.8, "Bo: said 0": 0.3, "Ann: said 43": 0.2}
    likeness |= {turn.line: 0.7 for turn in spoken(42)[4:]}
    found = await reading_of(state, likeness=likeness, anchors=2, preset="small", meaning="rerank")
    assert found.anchors == ("t2", "t1")


async def test_a_topic_is_found_by_its_keywords_too() -> None:
    """E.2 asks for them apart from the summary, "to support lexical matching"."""
    edits = [
        edit
        for number, words in enumerate([("garden",), ("rain",), ("vet", "horse")])
        for edit in (
            Append(number),
            Consolidate(Topic(f"t{number + 1}", f"about {number + 1}", words, (number,))),
        )
    ]
    found = await reading_of(
        replay(edits), Question("Was a vet called?"), likeness={"about 1": 0.9}, anchors=2
    )
    assert set(found.anchors) == {"t1", "t3"}


def test_neighbours_are_reached_by_the_strongest_links_and_in_their_direction() -> None:
    """E.1: confidence is the weight; support, contradict and causal are asymmetric."""
    edits = [
        edit
        for number in range(6)
        for edit in (Append(number), Consolidate(Topic(f"t{number + 1}", "s", (), (number,))))
    ]
    edits += [
        Link("t2", "t1", "causal", 0.6),
        Link("t3", "t2", "causal", 0.9),
        Link("t4", "t2", "semantic", 0.7),
        Link("t5", "t2", "coreference", 0.8),
        Link("t6", "t4", "support", 0.9),
    ]
    state = replay(edits)
    assert state.neighbours(["t2"]) == ["t5", "t4", "t1"]
    assert state.neighbours(["t2", "t5"]) == ["t4", "t1"]


# Eq. 10


async def test_candidates_are_all_events_of_the_reached_topics_and_of_the_buffer() -> None:
    state = consolidated([2, 3, 2], [("t3", "t2")], buffered=2)
    judging = Judging({})
    found = await reading_of(state, likeness={"about 2": 0.9}, anchors=1, k=20, judging=judging)
    assert found.candidates == 7
    assert {event.turn: event.topic for event in found.events} == {
        **dict.fromkeys((2, 3, 4), "t2"),
        **dict.fromkeys((5, 6), "t3"),
        **dict.fromkeys((7, 8), None),
    }
    assert judging.judged == [turn.line for turn in spoken(9)[2:]]


async def test_an_empty_memory_has_nothing_to_read() -> None:
    for without in (None, "tan", "epg", "mfr"):
        found = await reading_of(GamState(), without=without)
        assert (found.events, found.anchors, found.topics) == ((), (), ())
        assert found.show(GamState(), []) == []


# Eq. 11


async def test_the_score_is_the_chance_times_a_factor_for_each_indicator_that_holds() -> None:
    """Hand-computed: 0.5 x 1.4 (time) x 1.4 (role) x 1.2 (confidence), and parts of it."""
    marks = {
        0: Marks(temporal=True, consistent=True),
        1: Marks(temporal=True),
        2: Marks(consistent=True),
        3: Marks(),
        4: Marks(temporal=True, consistent=True),
    }
    state = consolidated([5], marks=marks)
    chances = {turn.line: 0.5 for turn in spoken(4)} | {"Bo: said 4": 0.1}
    found = await reading_of(state, Question("When did Bo paint?"), chances=chances)
    by_turn = {event.turn: event for event in found.events}
    expected = {
        0: (0.5 * 1.4 * 1.4 * 1.2, ("time", "role", "conf")),
        1: (0.5 * 1.4, ("time",)),
        2: (0.5 * 1.4 * 1.2, ("role", "conf")),
        3: (0.5, ()),
        4: (0.1 * 1.4 * 1.4 * 1.2, ("time", "role", "conf")),
    }
    assert {turn: event.fired for turn, event in by_turn.items()} == {
        turn: fired for turn, (_, fired) in expected.items()
    }
    assert {turn: event.score for turn, event in by_turn.items()} == pytest.approx(
        {turn: score for turn, (score, _) in expected.items()}
    )
    assert [event.turn for event in found.events] == [0, 2, 1, 3, 4]
    assert all(event.likely <= event.score for event in found.events)


async def test_a_turn_of_the_buffer_has_its_marks_by_rules() -> None:
    turns = [Turn("1", "Ann", "Yesterday I painted.", MAY), Turn("2", "Bo", "Did you?", MAY)]
    state = replay([Append(0), Append(1)])
    found = await reading_of(state, Question("When?"), turns=turns)
    assert {event.turn: event.fired for event in found.events} == {0: ("time", "conf"), 1: ()}


# P_sem from context

WORDS = st.lists(st.sampled_from("paint horse lake book garden kitchen".split()), min_size=1)


def told(*texts: str, session: str = "1") -> list[Turn]:
    return [Turn(str(n), "Ann", text, session=session) for n, text in enumerate(texts)]


async def chances_of(
    turns: list[Turn],
    question: str,
    candidates: list[int],
    gone: Collection[int] = (),
    judging: Reranker | None = None,
) -> list[float]:
    """P_sem of some turns, the only ones that the buffer holds."""
    state = GamState(turns=len(turns), buffer=tuple(candidates), forgotten=frozenset(gone))
    found = await reading_of(
        state,
        Question(question),
        turns=turns,
        embedder=WordEmbedder(),
        judging=judging,
        preset="small",
        k=len(turns),
    )
    likely = {event.turn: event.likely for event in found.events}
    return [likely[number] for number in candidates]


async def test_a_turn_is_found_by_what_is_said_around_it() -> None:
    turns = [
        *told("I saw a horse.", "Oh yes!", "Something else.", "Much later.", "Oh no!"),
        *told("Oh no!", session="2"),
    ]
    near, *far = await chances_of(turns, "a horse", [1, 4, 5])
    assert near > max(far)
    assert far[0] == pytest.approx(far[1], abs=1e-6)


async def test_what_is_gone_lends_its_neighbours_nothing() -> None:
    turns = told("I saw a horse.", "Oh no!", "It rained.", "Well.", "Oh no!")
    near, far = await chances_of(turns, "horse", [1, 4])
    assert near > far
    near, far = await chances_of(turns, "horse", [1, 4], gone={0})
    assert near == pytest.approx(far, abs=1e-6)


class InContext:
    """A judge that is told P(relevant) of lines, and keeps which it was asked about, and beside
    which others."""

    def __init__(self, chances: Mapping[str, float]) -> None:
        self._chances = chances
        self.asked: dict[str, set[str]] = {}

    def __call__(
        self, query: str, texts: Sequence[str], around: Sequence[Sequence[int]] = ()
    ) -> list[float]:
        assert query == "horse"
        beside = [{texts[place] for place in places} for places in around]
        self.asked = dict(zip(texts, beside, strict=True)) if around else {}
        return [self._chances.get(text, 0.1) for text in texts]


async def test_a_reranker_by_late_interaction_adds_its_judgement_of_a_turn_in_its_session() -> None:
    turns = [*told("Oh yes!", "It rained.", "Well."), *told("Oh no!", session="2")]
    judge = InContext({"Ann: It rained.": 0.9})
    judging = ContextReranker(lambda: judge, model_id="fake/in context")
    likely = await chances_of(turns, "horse", [1, 2, 3], judging=judging)
    assert likely[0] > likely[1] == pytest.approx(likely[2])
    assert judge.asked == {
        "Ann: It rained.": {"Ann: Oh yes!", "Ann: Well."},
        "Ann: Well.": {"Ann: It rained."},
        "Ann: Oh no!": set(),
        "Ann: Oh yes!": set(),
    }
    await chances_of(turns, "horse", [0, 1], gone={0}, judging=judging)
    assert judge.asked["Ann: It rained."] == set()  # 2 may be the question, 0 is deleted


async def test_it_is_asked_without_names_in_the_papers_reading_too() -> None:
    judge = InContext({"Ann: said 1": 0.9})
    judging = ContextReranker(lambda: judge, model_id="fake/in context")
    found = await reading_of(consolidated([3]), Question("Ann's horse"), judging=judging)
    assert found.events[0].turn == 1


async def test_only_the_turns_that_are_best_without_it_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mgl.retrieval.turns.JUDGED", 1)
    turns = told("I saw a horse.", "It rained.", "Well.", "Oh no!", "Never.")
    judge = InContext({"Ann: Never.": 1.0})
    judging = ContextReranker(lambda: judge, model_id="fake/in context")
    likely = await chances_of(turns, "horse", [0, 4], judging=judging)
    assert likely == [1.0, 0.0]
    assert "Ann: Never." not in judge.asked


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=8), asked=WORDS)
async def test_the_chances_of_candidates_sum_to_one(
    texts: list[list[str]], asked: list[str]
) -> None:
    turns = told(*(" ".join(words) for words in texts))
    likely = await chances_of(turns, " ".join(asked), list(range(len(turns))))
    assert min(likely) > 0
    assert sum(likely) == pytest.approx(1)


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("When did Ann paint?", "When did paint?"),
        ("What is Ann's horse called?", "What is horse called?"),
        ("Did Anna paint?", "Did Anna paint?"),
        ("Where did Bo Smith go?", "Where did go?"),
    ],
)
def test_names_of_speakers_are_left_out(question: str, left: str) -> None:
    assert remove_names(question, ["Ann", "Bo Smith"]) == left


# Ablations


async def test_without_the_topic_network_all_events_are_searched_flatly() -> None:
    state = consolidated([1, 1, 1])
    found = await reading_of(
        state, likeness={"about 1": 0.9}, chances={"Bo: said 2": 0.9}, anchors=1, without="tan"
    )
    assert found.candidates == 3
    assert found.events[0].turn == 2


async def test_without_event_graphs_summaries_of_topics_and_neighbours_are_read() -> None:
    """No text of an event is left, so that this is less than the full method reads."""
    state = consolidated([2, 2, 1], [("t3", "t2")], buffered=1)
    likeness = {"about 3": 0.9, "about 1": 0.5}
    chances = {"about 2": 0.8, "about 3": 0.6}
    found = await reading_of(
        state, likeness=likeness, chances=chances, anchors=2, k=2, without="epg"
    )
    assert (found.events, found.topics) == ((), ("t2", "t3"))
    assert found.show(state, spoken(6)) == [
        ((2, 3), "(Monday, 08 May 2023) Summary: about 2"),
        ((4,), "(Monday, 08 May 2023) Summary: about 3"),
    ]


async def test_without_multi_factor_ranking_likeness_alone_decides() -> None:
    marks = dict.fromkeys(range(3), Marks(True, True))
    likeness = {"Ann: said 1": 0.9, "Bo: said 2": 0.4}
    judging = Judging({"Bo: said 0": 1.0})
    found = await reading_of(
        consolidated([3], marks=marks),
        Question("When did Bo paint?"),
        likeness=likeness,
        judging=judging,
        without="mfr",
    )
    assert [event.turn for event in found.events] == [1, 2, 0]
    assert [event.score for event in found.events] == pytest.approx([0.9, 0.4, 0.0], abs=1e-6)
    assert all(event.fired == () for event in found.events)
    assert judging.judged == []


# What becomes of it


async def test_events_are_shown_in_order_under_the_summaries_of_their_topics() -> None:
    state = consolidated([2, 3], buffered=1)
    chances = {"Bo: said 2": 0.9, "Bo: said 0": 0.5, "Bo: said 4": 0.4, "Ann: said 5": 0.3}
    found = await reading_of(state, chances=chances, k=4)
    assert [event.turn for event in found.events] == [2, 0, 4, 5]
    day = "(Monday, 08 May 2023)"
    assert found.show(state, spoken(6)) == [
        ((0,), f"{day} Summary: about 1"),
        ((0,), f"{day} Bo: said 0"),
        ((2, 4), f"{day} Summary: about 2"),
        ((2,), f"{day} Bo: said 2"),
        ((4,), f"{day} Bo: said 4"),
        ((5,), f"{day} Ann: said 5"),
    ]
    assert found.made_of(state) == set(range(5))


async def test_turns_that_are_shown_anyway_are_replaced_by_others() -> None:
    state = consolidated([4], buffered=3)
    found = await reading_of(state, recent=(4, 5, 6), k=3)
    assert [event.turn for event in found.events] == [0, 1, 2]


@pytest.mark.parametrize("stand_in", [IdentityReranker(), SimilarityReranker(WordEmbedder())])
async def test_a_stand_in_for_the_cross_encoder_is_refused(
    memory_of: Callable[..., Gam], stand_in: Reranker
) -> None:
    turn = Turn("1", "Ann", "I paint.")
    refused = memory_of(Conversation.from_name("t"), reranker=stand_in)
    for work in (refused.append(turn), refused.read(PLAIN)):
        with pytest.raises(UsageError) as error:
            await work
        assert "--reranker all-minilm-l6-v2" in error.value.hint
