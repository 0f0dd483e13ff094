#!/usr/bin/env python3
"""Measure what constraints cost to compile and to follow, by the libraries servers decode with.

    PYTHONPATH=. SERVER_PYTHON scripts/bench/constraint_costs.py --tokenizer FOLDER [--limit 60]

Run it with the Python of a vLLM environment: xgrammar, llguidance and outlines_core are taken from
there, so the figures are those of that server's backends. Each constraint that memories declare is
compiled with 10, 100 and 1,000 ids, sentences or indices, in every notation that a backend reads.
Each compilation has a process of its own, killed after ``--limit`` seconds. The first time is from
the text of the constraint to one that can be followed, the second the mean of one mask while a
text of the grammar is followed. Servers add limits of their own (vLLM gives a regular expression
5 s).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, create_model

from mgl.llm.constraints import (
    index_set,
    max_chars,
    one_of,
    part_of,
    several,
)
from mgl.llm.fakes import sample
from mgl.llm.grammar import to_ebnf, to_lark, to_regex
from mgl.llm.schemas import compile_schema, json_schema, plain
from mgl.memories.mindgraph.edits import Block, operations_schema
from mgl.text import read_document, sentence_spans
from mgl.types import Chunk, Document, Span

STORY = Path(__file__).resolve().parents[1] / "examples" / "a-scandal-in-bohemia.txt"
SIZES = (10, 100, 1000)
FOLLOWED = 200  # tokens

Follow = Callable[[list[int]], None]
Compile = Callable[[str], Follow]


def reply(**fields: Any) -> type[BaseModel]:
    named: Any = {name: (kind, ...) for name, kind in fields.items()}
    made: type[BaseModel] = create_model("reply", **named)
    return made


def block(document: Document, sentences: int) -> Block:
    spans = sentence_spans(document.text, 0, len(document.text))[:sentences]
    whole = Span(document.id, 0, spans[-1][1])
    chunk = Chunk(0, whole, document.text[: whole.end], 0)
    return Block(document, chunk, tuple(document.span(*span) for span in spans))


def vocabularies(size: int) -> Iterator[tuple[str, type[BaseModel]]]:
    """Every constraint that memories declare, over ``size`` ids, sentences or indices."""
    document = read_document(STORY)
    page = block(document, 60)
    ids = [f"{name}_{n}" for n, name in enumerate(["the_king", "adler", "holmes"] * size)][:size]
    for cite in ("sentence", "quote"):
        yield (
            f"MindGraph edits, cite {cite}",
            operations_schema(ids, page, cite=cite, max_operations=12),
        )
    claim = Annotated[str, max_chars(160)]
    texts = [document.quote(span) for span in block(document, size).sentences]
    texts += [part for text in texts for part in text.split(", ")]
    quoted = list(dict.fromkeys(texts))[:size]
    yield "one of the ids", reply(id=one_of(ids), claim=claim)
    yield "a whole sentence", reply(src=one_of(quoted), claim=claim)
    yield "a part of the text", reply(src=part_of(" ".join(quoted), 600), claim=claim)
    yield "boundaries", reply(boundaries=index_set(size))
    merge = reply(points=index_set(size, least=2), description=claim)
    yield "merges", reply(merges=several(merge, 8))
    category = reply(category=Annotated[str, max_chars(40)], indexes=index_set(size, least=1))
    yield "categories", reply(categories=several(category, 20))


def notations(kind: type[BaseModel]) -> dict[str, str]:
    schema = json_schema(kind)
    tree = compile_schema(schema)
    return {
        "schema": json.dumps(plain(schema)),
        "regex": to_regex(tree),
        "ebnf": to_ebnf(tree),
        "lark": to_lark(tree),
    }


def xgrammar_compilers(tokenizer: Any) -> dict[str, Compile]:
    import xgrammar

    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
    compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)

    def followed(compiled: Any) -> Follow:
        mask = xgrammar.allocate_token_bitmask(1, info.vocab_size)

        def follow(tokens: list[int]) -> None:
            matcher = xgrammar.GrammarMatcher(compiled)
            for token in tokens:
                matcher.fill_next_token_bitmask(mask)
                if not matcher.accept_token(token):
                    return

        return follow

    def schema(text: str) -> Follow:
        options = {"any_whitespace": False, "separators": (",", ":")}
        return followed(compiler.compile_json_schema(text, **options))

    return {
        "schema": schema,
        "regex": lambda text: followed(compiler.compile_regex(text)),
        "ebnf": lambda text: followed(compiler.compile_grammar(text)),
    }


def guidance_compilers(tokenizer: Any) -> dict[str, Compile]:
    import llguidance
    import llguidance.hf
    import llguidance.torch

    known = llguidance.hf.from_tokenizer(tokenizer, len(tokenizer))

    def followed(grammar: str) -> Follow:
        first = llguidance.LLMatcher(known, grammar)
        if first.get_error():
            raise ValueError(first.get_error())
        mask = llguidance.torch.allocate_token_bitmask(1, known.vocab_size)
        llguidance.torch.fill_next_token_bitmask(first, mask, 0)

        def follow(tokens: list[int]) -> None:
            matcher = first.deep_copy()
            for token in tokens:
                llguidance.torch.fill_next_token_bitmask(matcher, mask, 0)
                if not matcher.consume_token(token):
                    return

        return follow

    def schema(text: str) -> Follow:
        compact = {"whitespace_flexible": False}
        return followed(llguidance.LLMatcher.grammar_from_json_schema(text, defaults=compact))

    return {
        "schema": schema,
        "regex": lambda text: followed(llguidance.grammar_from("regex", text)),
        "ebnf": lambda text: followed(llguidance.grammar_from("grammar", text)),
        "lark": lambda text: followed(llguidance.grammar_from("grammar", text)),
    }


def outlines_compilers(tokenizer: Any) -> dict[str, Compile]:
    import outlines_core
    from outlines_core.json_schema import build_regex_from_schema

    spelled = {chr(code): byte for byte, code in _printable_bytes().items()}
    words: dict[bytes, list[int]] = {}
    for token, number in tokenizer.get_vocab().items():
        if number != tokenizer.eos_token_id and all(char in spelled for char in token):
            words.setdefault(bytes(spelled[char] for char in token), []).append(number)
    vocabulary = outlines_core.Vocabulary(tokenizer.eos_token_id, words)

    def regex(text: str) -> Follow:
        index = outlines_core.Index(text, vocabulary)

        def follow(tokens: list[int]) -> None:
            guide = outlines_core.Guide(index)
            for token in tokens:
                guide.get_tokens()
                if not guide.accepts_tokens([token]):
                    return
                guide.advance(token)

        return follow

    return {"schema": lambda text: regex(build_regex_from_schema(text)), "regex": regex}


def _printable_bytes() -> dict[int, int]:
    """The character that byte-level tokenizers write for each byte."""
    plain_bytes = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain_bytes]
    return {byte: byte for byte in plain_bytes} | {
        byte: 0x100 + place for place, byte in enumerate(rest)
    }


BACKENDS = {
    "xgrammar": xgrammar_compilers,
    "guidance": guidance_compilers,
    "outlines": outlines_compilers,
}


def measure(
    backend: str, notation: str, text: str, said: str, tokenizer: Any, end: Connection
) -> None:
    """In a process of its own: sends (compile seconds, seconds a token) or a reason."""
    try:
        compiler = BACKENDS[backend](tokenizer)[notation]
        end.send("ready")
        began = time.perf_counter()
        follow = compiler(text)
        compiled = time.perf_counter() - began
        tokens = tokenizer(said, add_special_tokens=False)["input_ids"][:FOLLOWED]
        began = time.perf_counter()
        follow(tokens)
        end.send((compiled, (time.perf_counter() - began) / len(tokens)))
    except Exception as error:  # whatever a library raises on a constraint is the result here
        end.send(f"{type(error).__name__}: {error}"[:200])


def timed(limit: float, *arguments: Any) -> tuple[float, float] | str:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=measure, args=(*arguments, theirs))
    process.start()
    theirs.close()
    try:
        started = ours.recv()
        if started != "ready":
            return str(started)
        if not ours.poll(limit):
            return f"> {limit:g} s"
        answer: tuple[float, float] | str = ours.recv()
        return answer
    except EOFError:
        return f"the process died ({process.exitcode})"
    finally:
        process.kill()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tokenizer", required=True, help="folder of a model with its tokenizer")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one compilation")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer)
    libraries = {name: version(name) for name in ("xgrammar", "llguidance", "outlines_core")}
    print(json.dumps(libraries), file=sys.stderr)
    readable = {"xgrammar": ("schema", "regex", "ebnf"), "outlines": ("schema", "regex")}
    too_slow: set[tuple[str, str, str]] = set()
    for size in sorted(arguments.sizes):
        for name, kind in vocabularies(size):
            texts = notations(kind)
            said = sample(compile_schema(json_schema(kind)), random.Random(1))
            compact = json.dumps(json.loads(said), ensure_ascii=False, separators=(",", ":"))
            for backend in BACKENDS:
                for notation in readable.get(backend, tuple(texts)):
                    followed = compact if notation == "schema" else said
                    result: tuple[float, float] | str = "not tried: too slow with fewer"
                    if (name, backend, notation) not in too_slow:
                        result = timed(
                            arguments.limit, backend, notation, texts[notation], followed, tokenizer
                        )
                    if isinstance(result, str) and result.startswith(">"):
                        too_slow.add((name, backend, notation))
                    show(
                        arguments.json, size, name, backend, notation, len(texts[notation]), result
                    )


def show(
    as_json: bool,
    size: int,
    name: str,
    backend: str,
    notation: str,
    characters: int,
    result: tuple[float, float] | str,
) -> None:
    compiled, token, reason = (*result, None) if isinstance(result, tuple) else (None, None, result)
    if as_json:
        row = {
            "size": size,
            "constraint": name,
            "backend": backend,
            "notation": notation,
            "characters": characters,
            "compile_s": compiled,
            "token_ms": None if token is None else token * 1000,
            "failed": reason,
        }
        print(json.dumps(row), flush=True)
        return
    figures = reason if compiled is None else f"{compiled:8.3f} s {token * 1000:8.3f} ms/token"  # type: ignore[operator]
    print(f"{size:5} {name:30} {backend:9} {notation:7} {characters:8,} {figures}", flush=True)


if __name__ == "__main__":
    main()
