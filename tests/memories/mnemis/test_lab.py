"""Mnemis through the lab: one memory of a document, however it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.lab import Lab
from mgl.lab.workplace import Workplace
from tests.memories.mnemis.remembering import Teller, everything


@pytest.mark.usefixtures("embeds_words")
def test_asking_by_another_route_reads_the_memory_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Teller(everything)
    monkeypatch.setattr(Workplace, "engine", engine)
    path = tmp_path / "days.txt"
    path.write_text(
        "In Rome Bo met Cy. The ferry to Rome was late.\n\n"
        "Bo and Cy saw Detroit. Then Bo left Detroit, and Cy went to Rome."
    )
    told = {"memory": "mnemis", "extraction": "terms"}
    with Lab.open() as lab:
        first = lab.ask(path, "What was late?", **told, routes="system1", kinds="rag")
        assert "name_category" not in engine.stages()
        both = lab.ask(path, "What was late?", **told, k=2)
        made = engine.stages().count("name_category")
        assert made > 0
        alone = lab.ask(path, "What was closed?", **told, routes="system2")
        assert engine.stages().count("name_category") == made
        assert {first.memory_id, both.memory_id} == {alone.memory_id}
        [memory] = lab.memories()
        assert memory.record.config["kinds"] == "rag"
        assert len(lab.answers(memory.id)) == 2
        assert lab.ask(path, "What was late?", **told, compression=3).memory_id != memory.id
