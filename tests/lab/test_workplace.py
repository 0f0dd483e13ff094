from __future__ import annotations

from pathlib import Path

import pytest

from mgl import registry
from mgl.lab.model import ModelChoice, NoModel, OwnModels
from mgl.lab.workplace import Workplace
from mgl.llm.fakes import SchemaEngine
from mgl.observer import SilentObserver
from mgl.store import Store


@pytest.mark.usefixtures("embeds_words")
@pytest.mark.parametrize("name", [None, "identity"])
def test_all_memories_have_one_reranker(tmp_path: Path, name: str | None) -> None:
    kind = registry.load("memory", "gam")
    with Store.open(tmp_path / "mgl.sqlite") as store:
        place = Workplace(tmp_path, store, ModelChoice(reranker=name), SilentObserver())
        first, second = (place.tools(NoModel(model), kind) for model in ("a", "b"))
        assert first.reranker is second.reranker
        assert first.embedder is second.embedder
        place.close()


class Unclosed(SchemaEngine):
    is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True


def test_a_programs_own_engine_needs_no_profile_and_stays_open(tmp_path: Path) -> None:
    engine = Unclosed()
    own = OwnModels(engine, choice=ModelChoice("no-such-profile"))
    with (
        Store.open(tmp_path / "mgl.sqlite") as store,
        Workplace(tmp_path, store, own, SilentObserver()) as place,
    ):
        assert place.engine is engine
        assert place.preset == "paper"
    assert not engine.is_closed
