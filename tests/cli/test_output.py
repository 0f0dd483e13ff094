"""What is printed of an answer."""

from __future__ import annotations

import pytest

from mgl.cli.output import print_answer
from mgl.types import Answer, Document

TALE = Document.from_text("tale.txt", "Ann lost the ring at sea. Bo wept.")


def test_a_passage_that_two_nodes_stand_on_is_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lost, wept = TALE.span(0, 25), TALE.span(26, 34)
    cited = (TALE.cite("ring", lost), TALE.cite("ann", lost), TALE.cite("bo", wept))
    print_answer(Answer("Where?", "At sea.", None, cited))
    said = capsys.readouterr().out
    assert said.count("Ann lost the ring at sea.") == 1
    assert said.index("(ring)") < said.index("(bo)")
    assert "confidence" not in said
