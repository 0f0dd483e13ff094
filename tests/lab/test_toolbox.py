from __future__ import annotations

from pathlib import Path

import pytest

from mgl import registry
from mgl.lab.model import ModelChoice, NoModel
from mgl.lab.toolbox import Toolbox
from mgl.observer import SilentObserver
from mgl.store import Store


@pytest.mark.usefixtures("embeds_words")
@pytest.mark.parametrize("name", [None, "identity", "yes-no"])
def test_one_reranker_for_all_but_one_that_asks_each_its_own_model(
    tmp_path: Path, name: str | None
) -> None:
    kind = registry.load("memory", "gam")
    with Store.open(tmp_path / "mgl.sqlite") as store:
        toolbox = Toolbox(tmp_path, store, ModelChoice(), SilentObserver(), reranker=name)
        first, second = (toolbox.tools(NoModel(model), kind) for model in ("a", "b"))
        if name == "yes-no":
            assert second.required_reranker.model_id == "b+yes-no"
        else:
            assert first.reranker is second.reranker
        assert first.embedder is second.embedder
        toolbox.close()


def test_a_memory_may_be_kept_elsewhere_than_its_calls(tmp_path: Path) -> None:
    with Store.open(tmp_path / "calls.sqlite") as calls, Store.open(tmp_path / "m.sqlite") as kept:
        toolbox = Toolbox(tmp_path, calls, ModelChoice(), SilentObserver())
        assert toolbox.tools(NoModel("m"), store=kept).store is kept
        assert toolbox.tools(NoModel("m")).store is calls
        toolbox.close()
