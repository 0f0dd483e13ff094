"""The memories' prompts: the papers' are compared with their text where it is at hand, but for what
the extraction had damaged (docs/prompts.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from mgl.memories.gam import prompts as gam
from mgl.memories.hgmem import prompts as hgmem
from mgl.memories.mindgraph import prompts as mindgraph
from mgl.memories.mnemis import prompts as mnemis
from mgl.prompt import Prompt

PRINTED: dict[ModuleType, dict[str, str]] = {
    gam: dict.fromkeys(["RELATION", "SUMMARY", "BOUNDARIES"], "GAM E."),
    hgmem: {
        "EVOLVE": "HGMem Fig. 4",
        "MERGE": "HGMem Fig. 5",
        "CONCERNS": "HGMem Fig. 6",
        "SUBQUERY": "HGMem Fig. 7",
    },
    mindgraph: {
        "BUILD": "MindGraph D.1",
        "ANSWER": "MindGraph D.2",
        "LOOKUP_SOURCE": "MindGraph D.3",
        "SUBGRAPH_SUMMARY": "MindGraph D.3",
    },
    mnemis: dict.fromkeys(
        ["CATEGORIES", "CATEGORIES_SYSTEM", "GUIDANCE", "SELECTION"], "Mnemis Appendix E"
    ),
}
"""The prompts that a paper prints, with their places; the others are ours."""


def prompts_of(module: ModuleType) -> dict[str, Prompt]:
    return {name: one for name, one in vars(module).items() if isinstance(one, Prompt)}


@pytest.mark.parametrize("module", PRINTED)
def test_every_prompt_says_where_it_comes_from_and_what_it_is_given(module: ModuleType) -> None:
    for name, prompt in prompts_of(module).items():
        if name in PRINTED[module]:
            assert prompt.source.startswith(PRINTED[module][name])
        else:
            assert "ours" in prompt.source
        assert len(set(prompt.variables)) == len(prompt.variables)
        assert all("{" + variable + "}" in prompt.text for variable in prompt.variables), name


def test_a_brace_in_hgmems_prompts_is_a_variable() -> None:
    for name, prompt in prompts_of(hgmem).items():
        assert set(re.findall(r"\{([a-z_]+)\}", prompt.text)) == set(prompt.variables), name


def _gam(text: str, printed: str) -> bool:
    """But for line breaks, doubled braces and a typographer's apostrophe."""
    for extracted, meant in (("{{", "{"), ("}}", "}"), ("’", "'")):
        printed = printed.replace(extracted, meant)
    return " ".join(text.split()) in " ".join(printed.split())


def _hgmem(text: str, printed: str) -> bool:
    """But for brackets, rules and blanks, two headings that were lost in Fig. 4 and 5, and one
    letter."""
    damaged = r"[\s(){}|\[\]<>#*\\`-]"
    headings = r"#####-(Example of Anticipated Output Format|Real Data)-#####\n"
    extracted = re.sub(damaged, "", printed.replace("Premium Model", "Freemium Model"))
    if any(text == each.text for each in (hgmem.EVOLVE, hgmem.MERGE)):
        text = re.sub(headings, "", text)
    return re.sub(damaged, "", text) in extracted


def _mindgraph(text: str, printed: str) -> bool:
    """But for line breaks, code fences and the numbers of lines."""
    lines = (line for line in printed.splitlines() if line.strip() != "```")
    extracted = " ".join(re.sub(r"^ ?\d{3}(?= |$)", "", line) for line in lines)
    return " ".join(text.split()) in " ".join(extracted.split())


def _mnemis(text: str, printed: str) -> bool:
    """But for blanks, placeholders as the paper's code writes them, and what was set between: a
    table, code fences and line numbers."""
    for ours, theirs in {
        "{content}": "{context['content']}",
        "{existing_categories}": "{context['existing_categories']}",
        "{previous_layer}": "{layer - 1}",
    }.items():
        text = text.replace(ours, theirs)
    extracted = printed.partition("\nE Prompts\n")[2]
    table = r"Table 9: Detailed performance.*?(?=INSTRUCTIONS:)"
    extracted = re.sub(table, "", extracted, flags=re.DOTALL)
    extracted = re.sub(r"(?m)^\d{3,4}$", "", extracted).replace("```", "")
    return re.sub(r"\s", "", text) in re.sub(r"\s", "", extracted)


SAME: dict[ModuleType, Callable[[str, str], bool]] = {
    gam: _gam,
    hgmem: _hgmem,
    mindgraph: _mindgraph,
    mnemis: _mnemis,
}


@pytest.mark.papers
@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in PRINTED.items() for name in names]
)
def test_text_is_the_papers(module: ModuleType, name: str, papers: Path) -> None:
    paper = module.__name__.split(".")[-2]
    assert SAME[module](prompts_of(module)[name].text, (papers / f"{paper}.txt").read_text())
