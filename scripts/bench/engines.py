#!/usr/bin/env python3
"""The same three prompts under the same schema on one engine: validity and tokens a second.

Run it once an engine, on an otherwise idle machine, and lay the lines side by side:

    scripts/bench/engines.py openvino --weights model.gguf
    scripts/bench/engines.py transformers --weights folder-or.gguf
    scripts/bench/engines.py openai --base-url http://127.0.0.1:8000/v1

Each prompt is MindGraph's build prompt (by sentence) on a part of the demo's story. Prefill is
timed by a first call with a budget of one token, decoding by the full call that follows it: the
prompt is then in the engine's prefix cache, but for transformers, which has none and whose
prefill time is taken off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

from mgl.llm.base import Message, Request, Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.client import Client, Policy
from mgl.llm.engines import LocalModel, open_engine
from mgl.memories.mindgraph.edits import Block, operations_schema
from mgl.memories.mindgraph.prompts import BUILD_BY_SENTENCE
from mgl.memories.mindgraph.state import EMPTY, serialise
from mgl.models.profiles import load_profile
from mgl.serving.probe import probe
from mgl.text import read_document, sentence_spans
from mgl.types import Chunk

STORY = Path(__file__).parents[2] / "examples" / "a-scandal-in-bohemia.txt"
STARTS, CHARACTERS = (0, 12_000, 24_000), 3_000
QUESTION = "What does the King want from Holmes, and how does the matter end?"


def prompts() -> list[tuple[str, Block]]:
    """(prompt, number of sentences) for each of the three parts."""
    document = read_document(STORY)
    made = []
    for start in STARTS:
        span = document.span(start, start + CHARACTERS)
        sentences = sentence_spans(document.text, span.start, span.end)
        block = Block(
            document,
            Chunk(0, span, document.quote(span), 0),
            tuple(document.span(*sentence) for sentence in sentences),
        )
        text = BUILD_BY_SENTENCE.render(
            question=QUESTION,
            graph_state=serialise(EMPTY),
            block_idx="1",
            total_blocks="1",
            block_text=block.number_sentences(),
        )
        made.append((text, block))
    return made


async def measure(arguments: argparse.Namespace) -> None:
    profile, url = load_profile(arguments.model), arguments.base_url
    engine = await open_engine(
        profile,
        arguments.engine,
        local=LocalModel(arguments.weights) if arguments.weights else None,
        endpoint=ServerEndpoint(url, capabilities=await probe(url, None)) if url else None,
    )
    client = Client(engine, MemoryCallLog(), Policy(timeout_s=3600))
    try:
        for number, (text, block) in enumerate(prompts(), 1):
            schema = operations_schema([], block, cite="sentence", max_operations=3)
            messages = [Message("user", text)]
            started = time.perf_counter()
            await engine.generate(Request(tuple(messages), sampling=Sampling(max_tokens=1)))
            prefilled = time.perf_counter()
            reply = await client.complete(messages, schema, sampling=Sampling(max_tokens=1200))
            decoding = time.perf_counter() - prefilled
            if arguments.engine == "transformers":
                decoding -= prefilled - started
            assert reply.parsed is not None
            print(
                json.dumps(
                    {
                        "engine": arguments.engine,
                        "prompt": number,
                        "input_tokens": reply.usage.input_tokens,
                        "output_tokens": reply.usage.output_tokens,
                        "operations": len(reply.parsed.operations),
                        "valid": True,
                        "prefill_tokens_s": round(
                            reply.usage.input_tokens / (prefilled - started), 1
                        ),
                        "decode_tokens_s": round(reply.usage.output_tokens / decoding, 1),
                    }
                ),
                flush=True,
            )
    finally:
        await client.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("engine", choices=["openvino", "transformers", "openai"])
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", help="model profile")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--base-url")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
