from __future__ import annotations

from mgl.memories.graph.build import build_messages
from mgl.memories.graph.edits import Passage
from mgl.memories.graph.prompts import EXTRACT
from mgl.types import Chunk, Document


def test_the_prompt_is_pinned_and_what_changes_from_chunk_to_chunk_comes_last() -> None:
    assert EXTRACT.hash[:16] == "9908acdc11daddef"
    assert EXTRACT.text.endswith("{text}")
    text = 'She said {text}\n  and {entity_types}. "No."'
    document = Document.from_text("t", text)
    passage = Passage.of(document, Chunk(0, document.span(0, len(text)), text, 9))
    (message,) = build_messages(passage)
    assert "one of person, group, place," in message.content
    assert message.content.endswith('[1] She said {text} and {entity_types}. [2] "No."')
