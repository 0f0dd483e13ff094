from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import BaseModel, Field, ValidationError

from mgl.llm.constraints import max_chars
from mgl.llm.schemas import json_schema


class Said(BaseModel):
    text: Annotated[str, Field(min_length=1), max_chars(10)]


def test_a_bound_is_for_decoding_and_a_longer_text_is_no_error() -> None:
    assert json_schema(Said)["properties"]["text"]["maxLength"] == 10
    assert Said(text="x" * 30).text == "x" * 30
    with pytest.raises(ValidationError, match="at least 1"):
        Said(text="")
