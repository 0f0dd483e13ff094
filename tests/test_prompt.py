from __future__ import annotations

import pytest

from mgl.prompt import Prompt

PROMPT = Prompt("p", source="ours", text='{"a": "{x}"} {x} {y} {z}', variables=("x", "y"))


def test_only_declared_variables_are_placeholders() -> None:
    assert PROMPT.render(x="1", y="2") == '{"a": "1"} 1 2 {z}'


def test_a_value_is_never_expanded_again() -> None:
    assert PROMPT.render(x="{y}", y="2").endswith("{y} 2 {z}")


@pytest.mark.parametrize("values", [{"x": "1"}, {"x": "1", "y": "2", "z": "3"}])
def test_missing_and_unknown_variables_are_errors(values: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"y|z"):
        PROMPT.render(**values)


def test_hash_changes_with_the_text() -> None:
    assert Prompt("p", source="ours", text="a").hash != Prompt("p", source="ours", text="b").hash
