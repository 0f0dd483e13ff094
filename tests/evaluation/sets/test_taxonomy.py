"""The scales are Appendix C's: pinned here, compared with the paper's text where it is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from mgl.evaluation.sets import taxonomy
from mgl.evaluation.sets.sensemaking import QUESTIONS
from mgl.prompt import Prompt

PINNED = {"BREADTH": "c8a82b052b91cbc9", "DEPTH": "6c8ac544d3c1d6cd"}
PINNED_OURS = {"LABEL": "20c4109786dfbd91", "SUMMARY": "610265d3c13085e1"}


@pytest.mark.parametrize("name", PINNED | PINNED_OURS)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = getattr(taxonomy, name)
    assert prompt.hash[:16] == (PINNED | PINNED_OURS)[name]
    assert prompt.source.startswith("MindGraph C." if name in PINNED else "ours")
    assert all("{" + variable + "}" in prompt.text for variable in prompt.variables)


def test_the_questions_prompt_is_pinned() -> None:
    assert QUESTIONS.hash[:16] == "16834f983b51427a"


@pytest.mark.papers
@pytest.mark.parametrize("name", PINNED)
def test_text_is_the_papers(name: str, papers: Path) -> None:
    """Whole but for the last paragraph of each, which says what is kept."""
    prompt: Prompt = getattr(taxonomy, name)
    printed = " ".join((papers / "mindgraph.txt").read_text().split())
    text = " ".join(prompt.text.split())
    assert text in printed
    after = printed.partition(text)[2].strip()
    assert after.startswith("The filtering step in §4.1 keeps only items")


@pytest.mark.parametrize(
    ("scale", "reply", "kept"),
    [
        (taxonomy.BREADTH, taxonomy.BreadthReply, taxonomy.KEPT_BREADTH),
        (taxonomy.DEPTH, taxonomy.DepthReply, taxonomy.KEPT_DEPTH),
    ],
)
def test_every_label_is_defined_in_its_scale(
    scale: Prompt, reply: type[taxonomy.AxisReply], kept: tuple[str, ...]
) -> None:
    labels = get_args(reply.model_fields["label"].annotation)
    places = [scale.text.index(f"\n{label}. ") for label in labels]
    assert places == sorted(places)
    assert scale.text.count("\nWhy ") == len(labels)
    assert tuple(labels[-2:]) == kept
    assert list(reply.model_fields) == ["reason", "label"]
