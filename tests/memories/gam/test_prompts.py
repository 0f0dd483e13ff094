from __future__ import annotations

from pathlib import Path

import pytest

from mgl.memories.gam import prompts
from mgl.prompt import Prompt

PINNED = {
    "RELATION": "beac9b0c176ad812",
    "SUMMARY": "d48184f45882f1a0",
    "BOUNDARIES": "b3cd85f581801bc3",
}
PINNED_OURS = {
    "CUES": "f09aff22dbe6d792",
    "TIME_SENSITIVE": "4ee864df721a0158",
}


@pytest.mark.parametrize("name", PINNED | PINNED_OURS)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = getattr(prompts, name)
    assert prompt.hash[:16] == (PINNED | PINNED_OURS)[name]


@pytest.mark.papers
@pytest.mark.parametrize("name", PINNED)
def test_text_is_the_papers(name: str, papers: Path) -> None:
    """But for line breaks, doubled braces and a typographer's apostrophe (docs/prompts.md)."""
    prompt: Prompt = getattr(prompts, name)
    printed = (papers / "gam.txt").read_text()
    for extracted, meant in (("{{", "{"), ("}}", "}"), ("’", "'")):
        printed = printed.replace(extracted, meant)
    assert " ".join(prompt.text.split()) in " ".join(printed.split())


def test_every_prompt_says_where_it_comes_from() -> None:
    own = {name: each for name, each in vars(prompts).items() if isinstance(each, Prompt)}
    assert own.keys() == PINNED.keys() | PINNED_OURS.keys()
    for name, prompt in own.items():
        assert prompt.source.startswith("GAM E." if name in PINNED else "ours"), name
        for variable in prompt.variables:
            assert "{" + variable + "}" in prompt.text
