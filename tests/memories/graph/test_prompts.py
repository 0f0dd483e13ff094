from __future__ import annotations

import pytest

from mgl.memories.graph import prompts
from mgl.memories.graph.build import build_messages
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import Passage
from mgl.prompt import Prompt
from mgl.types import Chunk, Document

PINNED = {
    "EXTRACT": "9908acdc11daddef",
    "GLEAN": "955da64e23b80113",
    "DESCRIBE": "961394f20c4dd833",
}


@pytest.mark.parametrize("name", PINNED)
def test_hash_is_pinned(name: str) -> None:
    prompt: Prompt = getattr(prompts, name)
    assert prompt.hash[:16] == PINNED[name]


def test_every_prompt_is_pinned() -> None:
    assert set(prompts.__all__) == PINNED.keys()


def test_what_changes_from_chunk_to_chunk_comes_last() -> None:
    assert prompts.EXTRACT.text.endswith("{text}")
    text = 'She said {text}\n  and {entity_types}. "No."'
    document = Document.from_text("t", text)
    passage = Passage.of(document, Chunk(0, document.span(0, len(text)), text, 9))
    (message,) = build_messages(passage, GraphConfig(entity_types=("person", "ship")))
    assert "one of person, ship," in message.content
    assert message.content.endswith('[1] She said {text} and {entity_types}. [2] "No."')
