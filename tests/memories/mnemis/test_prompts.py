"""Mnemis' prompts are pinned, and the paper's are compared with its text where it is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.llm.grammar import to_ebnf, to_lark
from mgl.llm.schemas import compile_schema
from mgl.memories.mnemis import prompts
from mgl.prompt import Prompt
from tests.memories.mnemis.engine import reader, taken_in, talk

PRINTED = {
    "CATEGORIES": "149c56db548b264f",
    "CATEGORIES_SYSTEM": "9b87ae0efbc9b466",
    "GUIDANCE": "d056053ec0767ab1",
    "SELECTION": "a0f928058a237ed6",
}
OURS = {
    "ANSWER": "1c17c48956fbacb5",
    "CHOICE_ANSWER": "89d19778bc698206",
    "DESCRIBE": "efdbacd5c9c7e85f",
    "DESCRIBE_SEVERAL": "4e5a25ec8ddde4aa",
    "FACTS": "fb467287e7f1e4c2",
    "MORE_FACTS": "8432925d06e62cc1",
    "MORE_NAMES": "e07389f5fca84b52",
    "NAMES": "3a097e0ab73e0390",
    "NAME_CATEGORY": "f3f87607db3c44c4",
    "SAME_ENTITIES": "d18a1b947a39fd8a",
    "SAME_FACTS": "be342156cf8c16c8",
    "SELECT_NAMES": "26b7c91cc959416f",
    "SUMMARIES": "220989badee82d4e",
}
# As the paper's code writes the placeholders.
AS_PRINTED = {
    "{content}": "{context['content']}",
    "{existing_categories}": "{context['existing_categories']}",
    "{previous_layer}": "{layer - 1}",
}
TABLE = r"Table 9: Detailed performance.*?(?=INSTRUCTIONS:)"
LINE_NUMBERS = r"(?m)^\d{3,4}$"


def test_every_prompt_is_pinned() -> None:
    named = {name for name, value in vars(prompts).items() if isinstance(value, Prompt)}
    assert named == PRINTED.keys() | OURS.keys()


@pytest.mark.parametrize(("name", "pinned"), (PRINTED | OURS).items())
def test_hash_is_pinned(name: str, pinned: str) -> None:
    prompt: Prompt = getattr(prompts, name)
    assert prompt.hash[:16] == pinned
    assert prompt.source == "Mnemis Appendix E" if name in PRINTED else "ours" in prompt.source
    assert all("{" + variable + "}" in prompt.text for variable in prompt.variables)


@pytest.mark.papers
@pytest.mark.parametrize("name", PRINTED)
def test_text_is_the_papers(name: str, papers: Path) -> None:
    """But for line breaks, blanks, and what the extraction set between: a table, code fences and
    line numbers (docs/prompts.md)."""
    prompt: Prompt = getattr(prompts, name)
    text = prompt.text
    for ours, theirs in AS_PRINTED.items():
        text = text.replace(ours, theirs)
    extracted = (papers / "mnemis.txt").read_text().partition("\nE Prompts\n")[2]
    extracted = re.sub(TABLE, "", extracted, flags=re.DOTALL)
    extracted = re.sub(LINE_NUMBERS, "", extracted).replace("```", "")
    assert _bare(text) in _bare(extracted)


def test_names_and_facts_begin_with_the_same_text() -> None:
    values = {"recent": "Ann: Hi.", "episode": "Bo: [1] Hm."}
    names = prompts.NAMES.render(**values)
    facts = prompts.FACTS.render(**values, entities="- Bo")
    shared = names[: names.index("Which")]
    assert facts.startswith(shared)
    assert "[1] Hm." in shared


async def test_the_schemas_of_all_stages_can_be_compiled_for_every_notation() -> None:
    told = {"entities": ["Rome", 'the "Big" Apple', "Émile"]}
    turn = ("Ann", 'Émile saw Rome and the "Big" Apple.')
    again = ("Ann", "Émile left Rome. Rome city is far.")
    ingestor = reader(entities=[told, {"entities": ["Rome city", "Émile", "Rome"]}])
    await taken_in(ingestor, talk(turn, again))
    stages = {stage for stage, _ in ingestor.asked}
    assert stages >= {"entities", "entity_deduplication", "entity_summaries", "edges"}
    for request in ingestor.requests:
        assert request.json_schema is not None
        node = compile_schema(request.json_schema)
        assert to_lark(node)
        assert to_ebnf(node)


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text)
