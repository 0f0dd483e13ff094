"""The rules of Appendix E: what is told of a reply, and what is made of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.graph.names import entity_key
from mgl.memories.mnemis.layers import Group, find_left_over, find_violations, repair_groups

NAMES = ("Poodle", "Beagle", "Oak", "user", "Pine")


def group(name: str, *indexes: int) -> Group:
    return Group(name, indexes)


GOOD = [group("Dogs", 0, 1), group("Trees", 2, 4), group("Speaker", 3)]


@pytest.mark.parametrize(
    ("groups", "said", "reason"),
    [
        ([*GOOD, group("Dogs and Trees", 0, 2)], '"Dogs and Trees" has the word "and"', "and_in"),
        ([*GOOD, group("Dogs AND Trees", 0, 2)], '"Dogs AND Trees" has the word', "and_in_name"),
        ([*GOOD, group("…", 0, 2)], '"…" is no name of a category', "no_name"),
        ([*GOOD, group("X" * 10_000, 0, 2)], "is no name of a category", "no_name"),
        ([*GOOD, group("Pets", 0, 1)], '"Dogs" and "Pets" have the same nodes', "same_children"),
        ([*GOOD, group("Far", 77)], '"Far" has 77, but the indexes are 0 to 4', "empty"),
        ([*GOOD, group("Below", -1)], '"Below" has -1, but', "empty"),
    ],
)
def test_a_category_that_breaks_a_rule_is_refused(
    groups: list[Group], said: str, reason: str
) -> None:
    (problem,) = find_violations(groups, NAMES, (), 2)
    assert said in problem
    kept, refused = repair_groups(groups, NAMES, ())
    assert kept == GOOD
    assert [why.startswith(reason) for _, why in refused] == [True]


def test_left_over_nodes_are_told_but_not_the_speaker_where_there_is_no_such_category() -> None:
    groups = [group("Dogs", 0, 1)]
    assert find_violations(groups, NAMES, (), 2) == ["2, 4 are in no category."]
    assert find_left_over(groups, NAMES) == (2, 4)
    assert find_violations([], ["I", "me", "User"], (), 2) == []


def test_the_speaker_is_under_speaker_alone() -> None:
    groups = [group("Dogs", 0, 1, 3), group("Trees", 2, 4)]
    assert find_violations(groups, NAMES, (), 2) == ['3 may be in "Speaker" alone.']
    assert repair_groups(groups, NAMES, ())[0] == [group("Dogs", 0, 1), group("Trees", 2, 4)]
    speaker = entity_key("Speaker")
    assert find_violations(GOOD[:2], NAMES, [speaker], 2) == ['3 must be in "Speaker".']
    assert repair_groups(GOOD[:2], NAMES, [speaker])[0] == GOOD
    assert find_violations([*GOOD[:2], group("Speaker", 0)], NAMES, (), 2) == [
        '3 must be in "Speaker".'
    ]
    assert repair_groups([*GOOD[:2], group("SPEAKER", 0)], NAMES, ())[0][-1] == group(
        "SPEAKER", 0, 3
    )


def test_categories_of_one_name_are_one() -> None:
    groups = [group("Dogs", 0), group("the  dogs", 1, 0), *GOOD[1:]]
    assert find_violations(groups, NAMES, (), 2) == []
    assert repair_groups(groups, NAMES, ())[0] == GOOD


NAMED = st.sampled_from(["Dogs", "dogs", "Trees", "A and B", "", "??", "Speaker", "Zoo", "X" * 99])
ANY_GROUPS = st.lists(
    st.builds(Group, NAMED, st.lists(st.integers(-2, 6), max_size=6).map(tuple)), max_size=6
)


@given(groups=ANY_GROUPS, known=st.sets(st.sampled_from(["dogs", "speaker", "zoo"])))
def test_what_is_kept_breaks_no_rule_but_for_what_is_left_over(
    groups: list[Group], known: set[str]
) -> None:
    kept, refused = repair_groups(groups, NAMES, known)
    assert [
        p for p in find_violations(kept, NAMES, known, 2) if "are in no category" not in p
    ] == []
    assert repair_groups(kept, NAMES, known) == (kept, [])
    assert len({each.key for each in kept}) == len(kept)
    assert {reason for _, reason in refused} <= {"no_name", "and_in_name", "empty", "same_children"}
    said = {index for each in groups for index in each.indexes}
    assert {index for each in kept for index in each.indexes} <= said | {3}
