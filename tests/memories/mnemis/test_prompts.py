"""What Mnemis' prompts and schemas have in common."""

from __future__ import annotations

from mgl.llm.grammar import to_ebnf, to_lark
from mgl.llm.schemas import compile_schema
from mgl.memories.mnemis import prompts
from tests.memories.mnemis.engine import reader, taken_in, talk


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
