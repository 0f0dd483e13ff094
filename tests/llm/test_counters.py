from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import EngineRejected
from mgl.llm.engines.counters import Counters, read_counters, read_samples
from mgl.llm.engines.openai import OpenAIEngine
from tests.llm.server import MODEL, OTHER, VLLM, Server, serving

PAGE = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 9.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1.5e+03
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 640.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 1500.0
vllm:generation_tokens_total{engine="0",model_name="m"} 57.0
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 5.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 2.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 2.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 7.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 99.0
vllm:cache_config_info{block_size="128",cache_dtype="auto",engine="0"} 1.0
http_request_duration_seconds_sum{handler="/v1/chat/completions",method="POST"} 12.5
http_request_duration_seconds_sum{handler="/tokenize",method="POST"} 400.0
"""


def test_counters_are_added_over_engines_and_labels() -> None:
    assert read_counters(PAGE) == Counters(
        running=5,
        waiting=0,
        block_tokens=128,
        requests=7,
        prompt_tokens=1500,
        generation_tokens=57,
        prefix_queries=1500,
        prefix_hits=640,
        ttft_s=2.5,
        ttft_count=7,
        http_s=12.5,
    )


def test_what_is_not_told_is_none_and_not_zero() -> None:
    assert read_counters("process_cpu_seconds_total 1.0\n<html>").waiting is None


def test_a_difference_is_what_happened_between_two_looks() -> None:
    later = PAGE.replace("1.5e+03", "2000").replace('engine="0",model_name="m"} 3.0', "} 8")
    change = read_counters(later) - read_counters(PAGE)
    assert (change.prefix_queries, change.prefix_hits, change.requests) == (500, 0, 0)
    assert (change.running, change.block_tokens) == (10, 128), "states are the later look's"


async def waiting(server: Server) -> int | None:
    engine = await OpenAIEngine.connect(
        server.url, model=MODEL, profile="m", model_id="m", context_tokens=99
    )
    try:
        return await engine.waiting()
    finally:
        await engine.aclose()


async def test_an_engine_says_how_many_requests_wait_where_the_server_tells() -> None:
    page = 'vllm:num_requests_waiting{engine="0"} 7.0'
    with serving({**VLLM, "/metrics": page}) as server:
        assert await waiting(server) == 7
    with serving({**VLLM, "/metrics": "python_info 1.0"}) as server:
        assert await waiting(server) is None
    with serving({**OTHER, "/metrics": page}) as server:
        assert await waiting(server) is None
        assert "/metrics" not in [path for path, _, _ in server.seen]


async def test_a_server_without_metrics_is_an_engine_error() -> None:
    with serving(VLLM) as server, pytest.raises(EngineRejected):
        await waiting(server)


Value = st.floats(allow_nan=False) | st.just(math.inf)
Label = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20)


@settings(max_examples=100, deadline=None)
@given(labels=st.dictionaries(st.sampled_from("abcdef"), Label, max_size=4), value=Value)
def test_every_label_and_value_is_read_back(labels: dict[str, str], value: float) -> None:
    written = ",".join(
        f'{k}="{v.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}"'
        for k, v in labels.items()
    )
    line = f"a:b_total{{{written}}} {value!r}"
    (sample,) = read_samples(f"# TYPE a\n{line}\n\n")
    assert (sample.name, sample.labels, sample.value) == ("a:b_total", labels, value)
