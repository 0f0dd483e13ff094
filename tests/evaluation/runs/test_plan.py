"""The methods of a run: which kind of memory each is, and the options that it is given."""

from __future__ import annotations

from typing import Any

import pytest

from mgl.errors import UsageError
from mgl.evaluation.runs.plan import list_methods


@pytest.mark.parametrize(
    ("settings", "preset"),
    [
        ({"anchoring": "summary"}, "small"),
        ({"anchoring": "summary", "preset": "small"}, "paper"),
        ({"gam.anchoring": "summary", "gam.preset": "small"}, "paper"),
    ],
)
def test_an_option_of_the_small_kind_is_taken_by_it(settings: dict[str, Any], preset: str) -> None:
    methods = list_methods(["gam", "turns"], settings, {"m": preset})
    assert methods[0].config["anchoring"] == "summary"
    assert methods[0].config["preset"] == "small"


def test_an_option_that_the_papers_kind_lacks_is_refused() -> None:
    with pytest.raises(UsageError, match="no memory of this run takes 'anchoring'"):
        list_methods(["gam"], {"anchoring": "summary"}, {"m": "paper"})


def test_each_model_has_the_kind_of_its_preset() -> None:
    methods = list_methods(["gam"], {"k": 5}, {"big": "paper", "little": "small"})
    assert [method.config["preset"] for method in methods] == ["paper", "small"]
    assert {method.config["k"] for method in methods} == {5}
