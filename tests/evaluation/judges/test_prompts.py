"""The judges' prompts: the papers' are compared with their text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.evaluation.judges import prompts
from mgl.evaluation.judges.judging import JUDGES
from mgl.prompt import Prompt

SOURCES = {
    "MINDGRAPH": "MindGraph D.4",
    "COMPREHENSIVENESS": "HGMem Fig. 8",
    "DIVERSITY": "HGMem Fig. 9",
    "BEAM_RUBRIC": "BEAM Listing 20",
    "BEAM_SAME": "BEAM Listing 21",
}
HELD = {name: one for name, one in vars(prompts).items() if isinstance(one, Prompt)}
HEADING = "-Anticipated Output Format-#####\n"


@pytest.mark.papers
def test_mindgraphs_is_the_papers(papers: Path) -> None:
    """But for the numbers of the lines and of the page (docs/prompts.md)."""
    lines = (papers / "mindgraph.txt").read_text().splitlines()
    printed = (re.sub(r"^ ?\d{3}(?= |$)", "", line) for line in lines if line.strip() != "```")
    assert _words(prompts.MINDGRAPH.text) in _words(" ".join(printed))


@pytest.mark.papers
@pytest.mark.parametrize("name", ["COMPREHENSIVENESS", "DIVERSITY"])
def test_hgmems_are_the_papers(name: str, papers: Path) -> None:
    """But for code fences, the marks of a list, and a heading that the extraction lost, which the
    figure names (docs/prompts.md)."""
    prompt: Prompt = getattr(prompts, name)
    assert prompt.text.count(HEADING) == 1
    printed = (papers / "hgmem.txt").read_text().replace("```", "")
    printed = re.sub(r"^- (?=\(\d\))", "", printed, flags=re.MULTILINE)
    assert _words(prompt.text.replace(HEADING, "\n")) in _words(printed)


def _words(text: str) -> str:
    return " ".join(text.split())


def test_every_prompt_says_where_it_comes_from_and_what_it_is_given_and_a_judge_asks_it() -> None:
    for name, prompt in HELD.items():
        assert prompt.source == SOURCES.get(name, prompt.source)
        assert name in SOURCES or prompt.source.startswith("ours")
        assert set(re.findall(r"\{([a-z_]+)\}", prompt.text)) == set(prompt.variables)
    asked = {prompt.name for judge in JUDGES.values() for prompt in judge.prompts}
    assert asked == {prompt.name for prompt in HELD.values()}
