"""Time how long a server's libraries take to compile JSON schemas; run by the server's own Python.

    python -P compiling.py tokenizer.json 5 <schemas.json

It reads ``{name: schema}`` and prints ``{backend: {name: seconds}}``, null where a schema is not
compiled within the limit (seconds) or at all, and nothing of a backend that is not installed. Each
compilation has a process of its own, which is killed when its time is up. The tokenizer has to be
byte-level, as those of Qwen and Llama are.

It runs where vLLM is and mgl is not: it imports nothing of mgl, and ``-P`` keeps the modules beside
it from being taken for those of the standard library.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Any

Compile = Callable[[str], Any]

_END = ("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>")


def guidance(path: str) -> Compile:
    import llguidance

    known = llguidance.LLTokenizer(path)

    def compile_schema(schema: str) -> None:
        compact = {"whitespace_flexible": False}
        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, defaults=compact)
        matcher = llguidance.LLMatcher(known, grammar)
        if matcher.get_error():
            raise ValueError(matcher.get_error())
        matcher.compute_bitmask()

    return compile_schema


def xgrammar(path: str) -> Compile:
    import xgrammar

    words, end = _read_words(path)
    info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.BYTE_LEVEL, stop_token_ids=[end])
    compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)
    return lambda schema: compiler.compile_json_schema(
        schema, any_whitespace=False, separators=(",", ":")
    )


def outlines(path: str) -> Compile:
    import outlines_core
    from outlines_core.json_schema import build_regex_from_schema

    words, end = _read_words(path)
    spelled = {chr(code): byte for byte, code in _list_printable_bytes().items()}
    numbers: dict[bytes, list[int]] = {}
    for number, word in enumerate(words):
        if number != end and all(char in spelled for char in word):
            numbers.setdefault(bytes(spelled[char] for char in word), []).append(number)
    vocabulary = outlines_core.Vocabulary(end, numbers)
    return lambda schema: outlines_core.Index(build_regex_from_schema(schema), vocabulary)


BACKENDS = {
    "guidance": ("llguidance", guidance),
    "xgrammar": ("xgrammar", xgrammar),
    "outlines": ("outlines_core", outlines),
}


def _read_words(path: str) -> tuple[list[str], int]:
    """Read all tokens by number, and the number of the one that ends a text."""
    from tokenizers import Tokenizer

    known = Tokenizer.from_file(path).get_vocab()
    words = [""] * (max(known.values()) + 1)
    for word, number in known.items():
        words[number] = word
    return words, next((known[word] for word in _END if word in known), len(words) - 1)


def _list_printable_bytes() -> dict[int, int]:
    """Map each byte to the character that byte-level tokenizers write for it."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return {byte: byte for byte in printable} | {
        byte: 0x100 + place for place, byte in enumerate(rest)
    }


def _compile(backend: str, path: str, schema: str, end: Connection) -> None:
    """Send "ready", then the seconds that one compilation took; nothing if it failed."""
    try:
        compile_schema = BACKENDS[backend][1](path)
        end.send("ready")
        began = time.perf_counter()
        compile_schema(schema)
        end.send(time.perf_counter() - began)
    except Exception as error:  # what a library cannot compile is a result here
        print(f"{backend}: {type(error).__name__}: {error}"[:300], file=sys.stderr)


def time_schema(backend: str, path: str, schema: str, limit: float) -> float | None:
    """Time one compilation, in seconds; None if it failed or took longer than ``limit``."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_compile, args=(backend, path, schema, theirs))
    process.start()
    theirs.close()
    try:
        if ours.recv() == "ready" and ours.poll(limit):
            seconds: float = ours.recv()
            return seconds
    except EOFError:  # it failed
        pass
    finally:
        process.kill()
        process.join()
    return None


def main(path: str, limit: float) -> None:
    schemas = {name: json.dumps(schema) for name, schema in json.load(sys.stdin).items()}
    costs = {
        backend: {name: time_schema(backend, path, schemas[name], limit) for name in schemas}
        for backend, (module, _) in BACKENDS.items()
        if find_spec(module) is not None
    }
    print(json.dumps(costs))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
