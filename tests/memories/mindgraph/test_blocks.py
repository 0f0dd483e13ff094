"""Which blocks are read for a question, and that names lead to a second place."""

from __future__ import annotations

from mgl.memories.mindgraph.small import BlockFinder
from mgl.retrieval.fakes import WordEmbedder
from mgl.text.names import find_names
from mgl.types import Chunk, Document

PARTS = (
    "The opera was sung by Ada Lind in the spring of that year. ",
    "Wolves ran over the hills, and snow lay on all the roofs. ",
    "Bread was dear, and the mill stood still for want of rain. ",
    "At his house Ada Lind kept three parrots and a clock. ",
)


def find(question: str, k: int) -> list[int]:
    document = Document.from_text("t", "".join(PARTS))
    starts = [sum(map(len, PARTS[:number])) for number in range(len(PARTS))]
    blocks = [
        Chunk(number, document.span(start, start + len(part)), part, 12)
        for number, (start, part) in enumerate(zip(starts, PARTS, strict=True))
    ]
    return BlockFinder(WordEmbedder(512), blocks, find_names(document.text)).find(question, k)


def test_the_block_that_shares_words_with_the_question_comes_first() -> None:
    assert find("Where did wolves run over hills?", 1) == [1]


def test_a_name_in_the_best_block_leads_to_a_block_that_shares_no_word_with_the_question() -> None:
    assert find("Who sang the opera?", 2) == [0, 3]


def test_a_document_without_blocks_has_none_to_read() -> None:
    assert BlockFinder(WordEmbedder(), [], []).find("Who?", 3) == []
