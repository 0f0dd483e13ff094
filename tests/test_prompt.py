"""What a prompt is, and the hash of each prompt of mgl."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

import mgl
from mgl.prompt import Prompt

HASHES = Path(__file__).with_name("prompts.json")

PROMPT = Prompt("p", source="ours", text='{"a": "{x}"} {x} {y} {z}', variables=("x", "y"))


def test_only_declared_variables_are_placeholders() -> None:
    assert PROMPT.render(x="1", y="2") == '{"a": "1"} 1 2 {z}'


def test_a_value_is_never_expanded_again() -> None:
    assert PROMPT.render(x="{y}", y="2").endswith("{y} 2 {z}")


@pytest.mark.parametrize("values", [{"x": "1"}, {"x": "1", "y": "2", "z": "3"}])
def test_missing_and_unknown_variables_are_errors(values: dict[str, str]) -> None:
    with pytest.raises(TypeError, match=r"y|z"):
        PROMPT.render(**values)


def find_prompts() -> list[Prompt]:
    package = Path(mgl.__file__).parent
    found: dict[int, Prompt] = {}
    for path in sorted(package.rglob("*.py")):
        if re.search(r"^[^#\n]*\bPrompt\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            values = vars(import_module(name)).values()
            found |= {id(each): each for each in values if isinstance(each, Prompt)}
    return list(found.values())


def test_every_prompt_is_pinned() -> None:
    """A change of one is a change of every call that shows it: write down its new hash."""
    hashes = {prompt.name: prompt.hash[:16] for prompt in find_prompts()}
    assert len(hashes) == len(find_prompts()), "no two have one name"
    assert hashes == json.loads(HASHES.read_text())
