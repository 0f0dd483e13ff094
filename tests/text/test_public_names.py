from __future__ import annotations

import mgl.text


def test_the_room_exports_these_names_and_no_others() -> None:
    assert mgl.text.__all__ == [
        "Located",
        "TimeMention",
        "chunk_document",
        "find_private",
        "locate",
        "numbered_sentences",
        "read_conversations",
        "read_document",
        "sentence_spans",
        "time_mentions",
        "window_document",
    ]
