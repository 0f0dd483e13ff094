"""The prompt of the entity graph: ours, in the manner of LightRAG, which the paper uses (§4.2).

What stays the same stands before what changes, so that a server reads the instructions once. An
item names its sentence before it says anything.
"""

from __future__ import annotations

from mgl.prompt import Prompt

EXTRACT = Prompt(
    "graph.extract",
    source="ours",
    text="""List the entities that the numbered sentences of a text tell of, and how these are \
related.

entities: everyone and everything that is named and matters. src is the number of the sentence \
that tells of it, name is its name in the text (no pronoun), type is one of {entity_types}, \
description says in one short sentence what the text tells of it.
relations: two of these entities that a sentence connects. src is the number of that sentence, \
source and target are names from your list of entities, description says in one short sentence \
how they are related.
Say only what the text says. A list stays empty where there is nothing to list.

{"entities": [
{"src": number, "name": "...", "type": "...", "description": "..."}
], "relations": [
{"src": number, "source": "...", "target": "...", "description": "..."}
]}

The text:
{text}""",
    variables=("entity_types", "text"),
)
