from __future__ import annotations

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.llm.fakes import sample
from mgl.llm.grammar import to_ebnf
from mgl.llm.patterns import compile_pattern
from mgl.llm.schemas import compile_schema
from tests.llm.notation import pattern_of

PATTERNS = [
    r"^[a-z0-9_]{1,40}$",
    r"^[^,;\]-]{2,9}$",
    r"^[^\s\"\\][^\t\n\r\"\\]{0,49}$",
    r"^[A-Z][\w -]{3}[\d.]$",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_a_pattern_holds_within_a_json_string(pattern: str, seed: int) -> None:
    node = compile_schema({"type": "string", "pattern": pattern})
    text = sample(node, random.Random(seed))
    assert re.search(pattern, json.loads(text))
    assert re.fullmatch(pattern_of(to_ebnf(node)), text)


@pytest.mark.parametrize(
    "pattern",
    [
        "unanchored",
        "^[a]",
        "[a]$",
        "^$",
        "^[a]b$",
        "^[a]+$",
        "^([a])$",
        r"^\d$",
        "^[a$",
        '^["]$',
        r"^[\s]$",
    ],
)
def test_a_pattern_that_says_more_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError):
        compile_pattern(pattern)
