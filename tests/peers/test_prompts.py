"""The prompts of the proxy are pinned: a change of one is a change of every call that shows it."""

from __future__ import annotations

import pytest

from mgl.peers import tools

PINNED = {
    "TOOLS": "626d49a49b63108f",
    "MAY_CALL": "dcb6559215eb3a13",
    "MUST_CALL": "a34115ed10cbdf0f",
    "RESULT": "31f7fc8143a6e71f",
}


@pytest.mark.parametrize(("name", "pinned"), PINNED.items())
def test_prompts_are_pinned(name: str, pinned: str) -> None:
    assert getattr(tools, name).hash[:16] == pinned
