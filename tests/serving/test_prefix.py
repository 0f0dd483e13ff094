from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.mindgraph import MindGraph, MindGraphConfig
from mgl.models.profiles import load_profile
from mgl.serving.prefix import PrefixShare, cacheable, measure_prefix
from mgl.serving.tapped import TappedEngine, shuffled_lines
from mgl.types import Document, Question
from tests.serving.counting import BLOCK, Counting, counting

TALE = " ".join(f"Ann met Bo in town number {n} in the spring of that year." for n in range(12))
GRAPH = '[\n{"id": "a"},\n{"id": "b", "content": "x, y"},\n{"id": "c"},\n{"id": "d"}\n]'


async def share(order: str, *, stable: bool = True) -> PrefixShare:
    with counting() as (server, _):
        engine = await TappedEngine.tap(
            load_profile("qwen2.5-7b-instruct"), server.url, model_id="m"
        )
        config = MindGraphConfig.model_validate(
            {"cite": "sentence", "chunk_tokens": 16, "prompt_order": order}
        )
        works = [(Document.from_text("tale.txt", TALE), Question("Who met Bo?"))]
        try:
            return await measure_prefix(
                engine, MindGraph, config, works, order=order, stable=stable
            )
        finally:
            await engine.aclose()


async def test_all_that_can_be_cached_is_counted_as_cached() -> None:
    found = await share("paper")
    assert found.alone
    assert found.prompts == 12
    assert found.cacheable == found.cached == found.counted > 0
    assert found.of_cacheable == 1.0


async def test_the_cached_order_can_keep_more_and_a_shuffled_graph_less() -> None:
    paper, cached, shuffled = (
        await share("paper"),
        await share("cached"),
        await share("cached", stable=False),
    )
    assert cached.of_all > 2 * paper.of_all
    assert cached.of_all > shuffled.of_all


Prompt = st.lists(st.integers(0, 2), min_size=1, max_size=30)


@settings(max_examples=100, deadline=None)
@given(prompts=st.lists(Prompt, max_size=8))
def test_what_can_be_cached_is_what_a_cache_of_blocks_finds(prompts: list[list[int]]) -> None:
    cache = Counting()
    assert cacheable(prompts, BLOCK) == [cache._cached("", prompt) for prompt in prompts]


def test_only_lists_laid_out_a_line_an_element_are_shuffled() -> None:
    text = f'Propose:\n\n{{"operations": [\n  {{"op": 1}},\n  {{"op": 2}}\n]}}\n\n{GRAPH}\n\nend'
    made = {shuffled_lines(text, random.Random(seed)) for seed in range(20)}
    assert len(made) > 5
    for one in made:
        before, after = text.split(GRAPH)
        assert one.startswith(before)
        assert one.endswith(after)
        lines = one[len(before) : -len(after)].removeprefix("[\n").removesuffix("\n]")
        assert sorted(lines.split(",\n")) == GRAPH[2:-2].split(",\n")
