from __future__ import annotations

from datetime import datetime

import pytest

from mgl.benchmarks.base import Item
from mgl.evaluation.records import item_from_json, item_to_json
from mgl.types import Question


@pytest.mark.parametrize(
    "question",
    [Question("Why?"), Question("Why?", form="long"), Question("Why?", datetime(2024, 5, 8), "Bo")],
)
def test_an_item_is_the_same_after_its_json(question: Question) -> None:
    item = Item("q", "s", question, golds=("Because.",), labels={"breadth": "global"})
    assert item_from_json(item_to_json(item)) == item


def test_an_item_from_before_questions_had_a_form_is_as_it_was() -> None:
    stored = item_to_json(Item("q", "s", Question("Why?")))
    assert stored["question"] == {"text": "Why?", "asked_at": None, "asker": None}
    assert item_from_json(stored).question.form == "short"
