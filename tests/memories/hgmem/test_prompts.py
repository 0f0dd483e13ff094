"""HGMem's prompts are the paper's: pinned here, compared with its text where it is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.memories.hgmem import printed, prompts
from mgl.prompt import Prompt

PINNED = {
    "EVOLVE": "f5f09a21b4539464",
    "MERGE": "b4100fef898d4d91",
    "CONCERNS": "e4c2c8d941cf6007",
    "SUBQUERY": "d3b04c62b2f0263a",
}
PINNED_OURS = {
    "ANSWER": "bc9f95eb97c7bae2",
    "CHOICE_ANSWER": "ab2b221e7f055f9e",
    "CONCERNS_JSON": "d012f41de8969951",
    "EVOLVE_JSON": "1ffbbf2e09f53d6a",
    "FOLLOW_UP": "3343a58eb57c543e",
    "INSERT_JSON": "0062acea3fc1ca50",
    "LONG_ANSWER": "85db56d5d7d7a8a8",
    "MERGE_JSON": "5289dfd7b26a94e1",
    "REPLACE_JSON": "161cd53103fd4373",
    "SUBQUERY_JSON": "9b4257c3237078bd",
    "SUFFICIENT": "7808c4e3050c3e78",
}
FIGURES = {"EVOLVE": 4, "MERGE": 5, "CONCERNS": 6, "SUBQUERY": 7}
HEADINGS = r"#####-(Example of Anticipated Output Format|Real Data)-#####\n"
DAMAGED = r"[\s(){}|\[\]<>#*\\`-]"


@pytest.mark.parametrize("name", PINNED | PINNED_OURS)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = getattr(prompts, name)
    assert prompt.hash[:16] == (PINNED | PINNED_OURS)[name]


@pytest.mark.papers
@pytest.mark.parametrize("name", PINNED)
def test_text_is_the_papers(name: str, papers: Path) -> None:
    """But for brackets, rules and blanks, which the extraction damaged, for the two headings that
    it lost in Fig. 4 and 5, and for one letter (docs/prompts.md)."""
    prompt: Prompt = getattr(prompts, name)
    text = prompt.text if FIGURES[name] > 5 else re.sub(HEADINGS, "", prompt.text)
    extracted = (papers / "hgmem.txt").read_text().replace("Premium Model", "Freemium Model")
    assert re.sub(DAMAGED, "", text) in re.sub(DAMAGED, "", extracted)


def test_every_prompt_says_where_it_comes_from() -> None:
    own = {name: one for name, one in vars(prompts).items() if isinstance(one, Prompt)}
    assert own.keys() == PINNED.keys() | PINNED_OURS.keys()
    assert PINNED.keys() == FIGURES.keys() == PINNED.keys() & vars(printed).keys()
    for name, prompt in own.items():
        source = f"HGMem Fig. {FIGURES[name]}" if name in FIGURES else "ours"
        assert prompt.source.startswith(source)
        assert len(set(prompt.variables)) == len(prompt.variables)
        named = set(re.findall(r"\{([a-z_]+)\}", prompt.text))
        assert named == set(prompt.variables), name
