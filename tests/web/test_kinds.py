from __future__ import annotations

from mgl.web.kinds import COLOURS, looks


def test_a_usual_kind_looks_the_same_beside_any_others() -> None:
    alone = looks(["claim"])[0]
    assert alone in looks(["zebra", "claim", "aunt", "entity"])


def test_many_kinds_can_all_be_told_apart() -> None:
    many = looks(f"kind {number:02}" for number in range(50))
    assert len({(each.shape, each.colour) for each in many}) == 50
    assert all(0 <= each.colour < COLOURS for each in many)


def test_order_and_repetition_make_no_difference() -> None:
    assert looks(["b", "a", "event", "b"]) == looks(["event", "a", "b"])
