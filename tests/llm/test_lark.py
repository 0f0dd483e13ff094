"""Lark grammars as llguidance itself reads them, followed byte by byte in random walks."""

from __future__ import annotations

import random
import re
from typing import Annotated, Any

import llguidance
import numpy as np
import pytest
from pydantic import BaseModel
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Decoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from mgl.llm.constraints import index_set, max_chars, one_of, part_of, several
from mgl.llm.grammar import to_lark
from mgl.llm.replies import validate
from mgl.llm.schemas import compile_schema, json_schema
from tests.llm.shapes import SHAPES, reply

BYTES = llguidance.LLTokenizer("byte")
LIKELY = frozenset(b'"}],0123456789 abc\\nt')
TEXT = 'He said "stop" and went.\nThen the dog – a black one – ran. It\'s over\\done. 日本 is\tfar.'


MERGE = reply(points=index_set(8, least=2), description=Annotated[str, max_chars(80)])
CATEGORY = reply(category=Annotated[str, max_chars(40)], indexes=index_set(6, least=1))
CONSTRAINED = {
    "boundaries": reply(boundaries=index_set(12)),
    "long": reply(boundaries=index_set(200)),
    "merges": reply(merges=several(MERGE, 3)),
    "categories": reply(categories=several(CATEGORY, 4, least=1)),
    "part": reply(src=part_of(TEXT, 40), claim=Annotated[str, max_chars(60)]),
}
KINDS = {**{shape.__name__: shape for shape in SHAPES}, **CONSTRAINED}


def walk(lark: str, seed: int) -> str:
    """A text that the grammar lets pass."""
    return bytes(draw_tokens(lark, BYTES, random.Random(seed))).decode(errors="replace")


def draw_tokens(lark: str, vocabulary: Any, draw: random.Random) -> list[int]:
    """Tokens that the grammar lets pass, drawn one by one until it ends."""
    problem = llguidance.LLMatcher.validate_grammar(lark, vocabulary)
    assert not problem, problem
    matcher, written = llguidance.LLMatcher(vocabulary, lark), list[int]()
    while not matcher.is_stopped():
        mask = np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.flatnonzero(np.unpackbits(mask, bitorder="little")).tolist()
        likely = [token for token in allowed if token in LIKELY] if vocabulary is BYTES else []
        token = draw.choice(likely if likely and draw.random() < 0.8 else allowed)
        if vocabulary is BYTES and token >= 256:  # the end of the text
            break
        assert matcher.consume_token(token), matcher.get_error()
        written.append(token)
    assert matcher.is_accepting() or matcher.is_stopped()
    return written


def refusal(text: str, kind: type[BaseModel]) -> str | None:
    verdict = validate(text, kind)
    if verdict.outcome == "ok":
        return None
    return f"rule {verdict.rule}" if verdict.rule else verdict.error


@pytest.mark.parametrize("name", KINDS)
def test_what_the_grammar_lets_pass_has_the_form(name: str) -> None:
    lark = to_lark(compile_schema(json_schema(KINDS[name])))
    for seed in range(12):
        text = walk(lark, seed)
        reason = refusal(text, KINDS[name])
        assert reason is None or re.search(r"^rule |at least 3 characters", reason), text


def test_a_part_ends_within_its_bound() -> None:
    kind = reply(src=part_of(TEXT, 20))
    lark = to_lark(compile_schema(json_schema(kind)))
    parts = [validate(walk(lark, seed), kind).parsed.model_dump()["src"] for seed in range(40)]
    assert all(part in TEXT for part in parts)
    assert max(map(len, parts)) <= 20
    assert len(set(parts)) > 10


@pytest.mark.parametrize("token", ["</s>", "<|im_start|>", "<filename>"])
def test_a_quote_of_a_control_token_is_written_without_it(token: str) -> None:
    """``</s>`` ends a reply."""
    letters = {char: at for at, char in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(letters, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), Decoder()
    tokenizer.add_special_tokens(["</s>", "<|im_start|>", "<filename>"])
    vocabulary = llguidance.LLTokenizer(tokenizer.to_str(), eos_token=tokenizer.token_to_id("</s>"))
    kind = reply(src=part_of(f"one {token}two three", 40), sure=one_of([f"a{token}b"]))
    lark = to_lark(compile_schema(json_schema(kind)))
    written = draw_tokens(lark, vocabulary, random.Random(1))
    said = validate(tokenizer.decode(written), kind).parsed.model_dump()
    assert said["sure"] == f"a{token}b"
    assert said["src"] in f"one {token}two three"


def test_a_text_ends_within_its_tokens() -> None:
    kind = reply(claim=Annotated[str, max_chars(60)])
    lark = to_lark(compile_schema(json_schema(kind)))
    assert "[max_tokens=15]" in lark
    for seed in range(40):
        claim = validate(walk(lark, seed), kind).parsed.model_dump()["claim"]
        assert len(claim.encode()) <= 15 or "\ufffd" in claim
