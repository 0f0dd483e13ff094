"""The memories' prompts: all are pinned, and the papers' compared with their text where it is at
hand, but for what the extraction had damaged (docs/prompts.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from mgl.memories.gam import prompts as gam
from mgl.memories.hgmem import prompts as hgmem
from mgl.memories.mindgraph import prompts as mindgraph
from mgl.memories.mnemis import prompts as mnemis
from mgl.prompt import Prompt


@dataclass(frozen=True)
class Pinned:
    """The hashes of a module's prompts: the paper's, by their places in it, and ours."""

    module: ModuleType
    printed: Mapping[str, tuple[str, str]]
    ours: Mapping[str, str]

    @property
    def prompts(self) -> dict[str, Prompt]:
        return {name: one for name, one in vars(self.module).items() if isinstance(one, Prompt)}


KINDS = {
    "gam": Pinned(
        gam,
        {
            "RELATION": ("GAM E.", "beac9b0c176ad812"),
            "SUMMARY": ("GAM E.", "d48184f45882f1a0"),
            "BOUNDARIES": ("GAM E.", "b3cd85f581801bc3"),
        },
        {"CUES": "f09aff22dbe6d792", "TIME_SENSITIVE": "4ee864df721a0158"},
    ),
    "hgmem": Pinned(
        hgmem,
        {
            "EVOLVE": ("HGMem Fig. 4", "f5f09a21b4539464"),
            "MERGE": ("HGMem Fig. 5", "b4100fef898d4d91"),
            "CONCERNS": ("HGMem Fig. 6", "e4c2c8d941cf6007"),
            "SUBQUERY": ("HGMem Fig. 7", "d3b04c62b2f0263a"),
        },
        {
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
        },
    ),
    "mindgraph": Pinned(
        mindgraph,
        {
            "BUILD": ("MindGraph D.1", "1024b2bf0794362c"),
            "ANSWER": ("MindGraph D.2", "43895a384712655b"),
            "LOOKUP_SOURCE": ("MindGraph D.3", "d7f91cc3a595b192"),
            "SUBGRAPH_SUMMARY": ("MindGraph D.3", "d144a10a5dc32b5f"),
        },
        {
            "ACTIONS": "b18506f25133a3d0",
            "BUILD_BY_SENTENCE": "7c4cdbe0bde9b3fa",
            "NO_QUESTION": "8c64672b3cc69647",
            "REPAIR_EDITS": "f6199b8ac8303b47",
            "REPORT": "7f55d3609c111ab0",
            "SEVERAL_QUESTIONS": "b8d33b567b2761d1",
            "TOO_LARGE": "6c948769a90da1d0",
        },
    ),
    "mnemis": Pinned(
        mnemis,
        {
            "CATEGORIES": ("Mnemis Appendix E", "149c56db548b264f"),
            "CATEGORIES_SYSTEM": ("Mnemis Appendix E", "9b87ae0efbc9b466"),
            "GUIDANCE": ("Mnemis Appendix E", "d056053ec0767ab1"),
            "SELECTION": ("Mnemis Appendix E", "a0f928058a237ed6"),
        },
        {
            "ANSWER": "1c17c48956fbacb5",
            "CHOICE_ANSWER": "89d19778bc698206",
            "DESCRIBE": "efdbacd5c9c7e85f",
            "FACTS": "fb467287e7f1e4c2",
            "MORE_FACTS": "8432925d06e62cc1",
            "MORE_NAMES": "e07389f5fca84b52",
            "NAMES": "3a097e0ab73e0390",
            "NAME_CATEGORY": "f3f87607db3c44c4",
            "SAME_ENTITIES": "d18a1b947a39fd8a",
            "SAME_FACTS": "be342156cf8c16c8",
            "SELECT_NAMES": "26b7c91cc959416f",
            "SUMMARIES": "220989badee82d4e",
        },
    ),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_every_prompt_is_pinned(kind: str) -> None:
    pinned = KINDS[kind]
    hashes = {name: prompt.hash[:16] for name, prompt in pinned.prompts.items()}
    assert hashes == {name: one for name, (_, one) in pinned.printed.items()} | pinned.ours


@each_kind
def test_every_prompt_says_where_it_comes_from_and_what_it_is_given(kind: str) -> None:
    pinned = KINDS[kind]
    for name, prompt in pinned.prompts.items():
        if name in pinned.printed:
            assert prompt.source.startswith(pinned.printed[name][0])
        else:
            assert "ours" in prompt.source
        assert len(set(prompt.variables)) == len(prompt.variables)
        assert all("{" + variable + "}" in prompt.text for variable in prompt.variables), name


def test_a_brace_in_hgmems_prompts_is_a_variable() -> None:
    for name, prompt in KINDS["hgmem"].prompts.items():
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
    if any(text == KINDS["hgmem"].prompts[name].text for name in ("EVOLVE", "MERGE")):
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


SAME: dict[str, Callable[[str, str], bool]] = {
    "gam": _gam,
    "hgmem": _hgmem,
    "mindgraph": _mindgraph,
    "mnemis": _mnemis,
}


@pytest.mark.papers
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, one in KINDS.items() for name in one.printed]
)
def test_text_is_the_papers(kind: str, name: str, papers: Path) -> None:
    text = KINDS[kind].prompts[name].text
    assert SAME[kind](text, (papers / f"{kind}.txt").read_text())
