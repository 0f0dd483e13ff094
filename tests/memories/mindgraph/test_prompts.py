"""MindGraph's prompts are the paper's: pinned here, compared with its text where it is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.memories.mindgraph import prompts
from mgl.prompt import Prompt

PINNED = {
    "BUILD": "1024b2bf0794362c",
    "ANSWER": "43895a384712655b",
    "LOOKUP_SOURCE": "d7f91cc3a595b192",
    "SUBGRAPH_SUMMARY": "d144a10a5dc32b5f",
}
PINNED_OURS = {
    "BUILD_BY_SENTENCE": "7c4cdbe0bde9b3fa",
    "REPAIR_EDITS": "f6199b8ac8303b47",
}


@pytest.mark.parametrize("name", PINNED | PINNED_OURS)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = getattr(prompts, name)
    assert prompt.hash[:16] == (PINNED | PINNED_OURS)[name]


@pytest.mark.papers
@pytest.mark.parametrize("name", PINNED)
def test_text_is_the_papers(name: str, papers: Path) -> None:
    prompt: Prompt = getattr(prompts, name)
    lines = (papers / "mindgraph.txt").read_text().splitlines()
    printed = " ".join(
        " ".join(re.sub(r"^ ?\d{3}(?= |$)", "", line).split())
        for line in lines
        if line.strip() != "```"
    )
    assert " ".join(prompt.text.split()) in " ".join(printed.split())
