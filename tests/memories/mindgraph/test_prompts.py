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
    "BUILD_CACHED": "5c8910ace5b49f2d",
    "BUILD_BY_SENTENCE_CACHED": "7123215dbac2b73d",
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


@pytest.mark.parametrize("name", ["BUILD", "BUILD_BY_SENTENCE"])
def test_the_cached_order_has_the_same_words_and_what_changes_last(name: str) -> None:
    paper: Prompt = getattr(prompts, name)
    cached: Prompt = getattr(prompts, f"{name}_CACHED")
    assert sorted(paper.text.split()) == sorted(cached.text.split())
    places = [cached.text.index("{" + variable + "}") for variable in cached.variables]
    assert places == sorted(places)
    assert cached.text.index("Output ONLY valid JSON") < places[0], "rules before the question"
    given = {"question": "Who?", "total_blocks": "9"}
    first = cached.render(**given, graph_state="[\n{1}\n]", block_idx="1", block_text="one")
    second = cached.render(**given, graph_state="[\n{1},\n{2}\n]", block_idx="2", block_text="two")
    kept = first.index("{1}") + len("{1}")
    assert first[:kept] == second[:kept]
