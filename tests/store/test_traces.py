from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.store.traces import WINDOW, Traces, strings

LONG = "Ann: I painted a horse by the lake, and then I painted the lake by the horse, too."


@pytest.mark.parametrize(
    ("gone", "text", "found"),
    [
        (["Ann: Hi  there"], "[1] Ann: Hi\nthere\n[2] Bo: Hm", True),
        (["Ann: Hi there"], "[1] Ann: Hi, there", False),
        ([LONG], f"[1] {LONG[:60]} […]", True),
        ([LONG], f"[1] {LONG[:34]} […]", True),
        ([LONG], LONG[10:76], True),
        ([LONG], "Ann: I painted a horse", False),
        (["", "  "], "anything", False),
        (["Bo: Yes"], "", False),
    ],
)
def test_a_text_is_found_whole_or_by_an_excerpt(gone: list[str], text: str, found: bool) -> None:
    assert Traces(gone).found_in(["nothing to see", text]) is found


@settings(max_examples=200, deadline=None)
@given(
    gone=st.text(st.characters(codec="utf-8"), min_size=2 * WINDOW, max_size=400),
    before=st.text(max_size=50),
    after=st.text(max_size=50),
    data=st.data(),
)
def test_any_excerpt_of_two_windows_is_found_wherever_it_was_cut(
    gone: str, before: str, after: str, data: st.DataObject
) -> None:
    gone = " ".join(gone.split())
    if len(gone) < 2 * WINDOW:
        return
    start = data.draw(st.integers(0, len(gone) - 2 * WINDOW))
    excerpt = gone[start : start + 2 * WINDOW].strip()
    if len(excerpt) == 2 * WINDOW:
        assert Traces([gone]).found_in([f"{before} {excerpt} {after}"])


def test_texts_within_texts_that_are_json_are_seen() -> None:
    reply = json.dumps({"summary": "Ann “painted”\na horse"})
    assert Traces(["Ann “painted” a horse"]).found_in(strings({"reply": [reply]}))
    assert not Traces(["Ann “painted” a horse"]).found_in([reply])
    assert list(strings({"a": [1, "b", "{no json"]})) == ["a", "b", "{no json"]
