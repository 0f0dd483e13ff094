"""Mnemis' prompts are the paper's: pinned here, compared with its text where it is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.memories.mnemis import printed
from mgl.prompt import Prompt

PINNED = {
    "CATEGORIES": "149c56db548b264f",
    "CATEGORIES_SYSTEM": "9b87ae0efbc9b466",
    "GUIDANCE": "d056053ec0767ab1",
    "SELECTION": "a0f928058a237ed6",
}
# As the paper's code writes the placeholders.
AS_PRINTED = {
    "{content}": "{context['content']}",
    "{existing_categories}": "{context['existing_categories']}",
    "{previous_layer}": "{layer - 1}",
}
TABLE = r"Table 9: Detailed performance.*?(?=INSTRUCTIONS:)"
LINE_NUMBERS = r"(?m)^\d{3,4}$"


@pytest.mark.parametrize("name", PINNED)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = getattr(printed, name)
    assert prompt.hash[:16] == PINNED[name]


@pytest.mark.papers
@pytest.mark.parametrize("name", PINNED)
def test_text_is_the_papers(name: str, papers: Path) -> None:
    """But for line breaks, blanks, and what the extraction set between: a table, code fences and
    line numbers (docs/prompts.md)."""
    prompt: Prompt = getattr(printed, name)
    text = prompt.text
    for ours, theirs in AS_PRINTED.items():
        text = text.replace(ours, theirs)
    extracted = (papers / "mnemis.txt").read_text().partition("\nE Prompts\n")[2]
    extracted = re.sub(TABLE, "", extracted, flags=re.DOTALL)
    extracted = re.sub(LINE_NUMBERS, "", extracted).replace("```", "")
    assert _bare(text) in _bare(extracted)


def test_every_prompt_says_where_it_comes_from() -> None:
    assert set(printed.__all__) == PINNED.keys()
    for name in printed.__all__:
        prompt: Prompt = getattr(printed, name)
        assert prompt.source == "Mnemis Appendix E"
        assert set(re.findall(r"\{([a-z_]+)\}", prompt.text)) == set(prompt.variables)


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text)
