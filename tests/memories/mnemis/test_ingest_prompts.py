"""The prompts of the base graph are pinned, and each schema can be decoded under."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from mgl.llm.grammar import to_ebnf, to_lark
from mgl.llm.schemas import compile_schema, json_schema
from mgl.memories.mnemis import ingest_prompts
from mgl.memories.mnemis.proposals import (
    facts_schema,
    names_schema,
    same_entities_schema,
    same_facts_schema,
    summaries_schema,
)
from mgl.prompt import Prompt

PINNED = {
    "FACTS": "fb467287e7f1e4c2",
    "MORE_FACTS": "8432925d06e62cc1",
    "MORE_NAMES": "ecf6ee078798a03f",
    "NAMES": "27ff0ca6f3573a70",
    "SAME_ENTITIES": "d18a1b947a39fd8a",
    "SAME_FACTS": "3af56dae7c5bdd6a",
    "SUMMARIES": "e4ac094b5fcb72a3",
}
SCHEMAS: list[type[BaseModel]] = [
    names_schema(2),
    same_entities_schema({"n2": ["e1", "e7"], "n3": ["n2"]}),
    summaries_schema(["e1", "e12"], 3),
    facts_schema(["Ann", 'the "Big" Apple', "Émile"], 1, 3, 12),
    same_facts_schema({"n1": ["f1", "f2"], "n4": ["f9"]}),
]


@pytest.mark.parametrize("name", PINNED)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = getattr(ingest_prompts, name)
    assert prompt.hash[:16] == PINNED[name]


def test_every_prompt_is_ours_and_shows_its_variables() -> None:
    assert set(ingest_prompts.__all__) == PINNED.keys()
    for name in ingest_prompts.__all__:
        prompt: Prompt = getattr(ingest_prompts, name)
        assert prompt.source.startswith("ours")
        assert all("{" + variable + "}" in prompt.text for variable in prompt.variables)


def test_names_and_facts_begin_with_the_same_text() -> None:
    values = {"recent": "Ann: Hi.", "episode": "Bo: [1] Hm."}
    names = ingest_prompts.NAMES.render(**values)
    facts = ingest_prompts.FACTS.render(**values, entities="- Bo")
    shared = names[: names.index("Which")]
    assert facts.startswith(shared)
    assert "[1] Hm." in shared


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.__name__)
def test_the_schemas_can_be_compiled_for_every_notation(schema: type[BaseModel]) -> None:
    node = compile_schema(json_schema(schema))
    assert to_lark(node)
    assert to_ebnf(node)


def test_a_reply_is_held_to_what_there_is() -> None:
    names, same, summaries, facts, joined = SCHEMAS
    summary = {"src": 3, "summary": "She paints.", "tags": ["person"]}
    summaries.model_validate({"e1": summary, "e12": summary})
    facts.model_validate(
        {"facts": [{"src": 1, "source": "Ann", "target": "Émile", "fact": "They met."}]}
    )
    joined.model_validate(
        {"n1": {"same": "f2", "contradicts": ["f1"]}, "n4": {"same": "none", "contradicts": []}}
    )
    wrong: list[tuple[type[BaseModel], dict[str, object]]] = [
        (names, {"entities": ["Ann", "Bo", "Cy"]}),
        (same, {"n2": "e2", "n3": "new"}),
        (same, {"n2": "e1"}),
        (summaries, {"e1": summary}),
        (facts, {"facts": [{"src": 1, "source": "Bo", "target": "Ann", "fact": "They met."}]}),
        (joined, {"n1": {"same": "f9", "contradicts": []}}),
    ]
    for schema, reply in wrong:
        with pytest.raises(ValidationError):
            schema.model_validate(reply)
