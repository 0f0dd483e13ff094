"""The judges' prompts: the papers' are pinned and compared with their text, ours are pinned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.evaluation.judges import prompts
from mgl.evaluation.judges.judging import JUDGES
from mgl.prompt import Prompt

PINNED = {
    "MINDGRAPH": "325a5161c8140816",
    "COMPREHENSIVENESS": "426f1a5852464bb9",
    "DIVERSITY": "7b12c48884dbf07f",
}
PINNED_OURS = {
    "ABSTENTION": "ca92c1d39e03364c",
    "BETTER": "d28b9fd1512334c6",
    "CLOSER": "affd94fb50b4a7c9",
    "CORRECTNESS": "4c9e6760469010d3",
    "ENTAILMENT": "60b9c75f557afd48",
    "EVALUATION_AS_JSON": "c744d31cf4210db9",
    "FILM": "0e5ed4744f953b4d",
    "KNOWLEDGE_UPDATE": "991e447f815fb823",
    "PREFERENCE": "7a0a058c7ac56128",
    "REMEMBERED": "2114ed2c9f146c59",
    "SUPPORT": "a5744357544ceeb2",
    "TALK": "c96615892000e38a",
    "TEMPORAL": "d2bd82dd26987c90",
}
SOURCES = {
    "MINDGRAPH": "MindGraph D.4",
    "COMPREHENSIVENESS": "HGMem Fig. 8",
    "DIVERSITY": "HGMem Fig. 9",
}
HELD = {name: one for name, one in vars(prompts).items() if isinstance(one, Prompt)}
HEADING = "-Anticipated Output Format-#####\n"


def test_hashes_are_pinned() -> None:
    assert {name: prompt.hash[:16] for name, prompt in HELD.items()} == PINNED | PINNED_OURS


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
    asked |= {prompts.BETTER.name, prompts.CLOSER.name}
    assert asked == {prompt.name for prompt in HELD.values()}
