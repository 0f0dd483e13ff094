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
from mgl.llm.patterns import parse_pattern
from mgl.llm.schemas import compile_schema
from tests.llm.notation import pattern_of

PATTERNS = [
    r"^[a-z0-9_]{1,40}$",
    r"^n\d+$",
    r"^(?:yes|no|may be)$",
    r"^[^,;\]-]{2,}$",
    r"^a?b*c+d{2}$",
    r"^\w+(?: \w+){0,3}\.$",
    r"^[A-Z][a-z]* said \"[a-z\"\\ ]{1,9}\"$",
    r"^.{1,5}$",
    r"^(a|b(c|d)){3}$",
    r"^\(x\)\s\*$",
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
        "^open",
        r"^(?=a)b$",
        r"^(?P<n>a)$",
        r"^a+?$",
        r"^a**$",
        r"^\bword$",
        r"^(a$",
        r"^a)$",
        r"^[a$",
        r"^a{x}$",
        r"^*$",
        r"^a\$",
    ],
)
def test_a_pattern_that_says_more_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_pattern(pattern)
    assert pattern in caught.value.message.replace("\\\\", "\\")
