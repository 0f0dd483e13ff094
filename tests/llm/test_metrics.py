from __future__ import annotations

from mgl.llm.engines.server import read_metrics
from tests.llm.server import OTHER, VLLM, Server, connect, serving


def test_samples_are_read_and_other_lines_skipped() -> None:
    page = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:prefix_cache_queries_total{engine="0"} 1.5e+03 1700000000
python_info 1.0
<html>
"""
    assert list(read_metrics(page)) == [
        ("vllm:num_requests_running", {"engine": "0", "model_name": "m"}, 3.0),
        ("vllm:prefix_cache_queries_total", {"engine": "0"}, 1500.0),
        ("python_info", {}, 1.0),
    ]


async def count_waiting(server: Server) -> int | None:
    engine = await connect(server.url)
    try:
        return await engine.count_waiting()
    finally:
        await engine.aclose()


async def test_an_engine_says_how_many_requests_wait_if_the_server_reports_it() -> None:
    page = 'vllm:num_requests_waiting{engine="0"} 5.0\nvllm:num_requests_waiting{engine="1"} 2.0'
    with serving({**VLLM, "/metrics": page}) as server:
        assert await count_waiting(server) == 7
    with serving({**VLLM, "/metrics": "python_info 1.0"}) as server:
        assert await count_waiting(server) is None
    with serving({**OTHER, "/metrics": page}) as server:
        assert await count_waiting(server) is None
        assert "/metrics" not in [path for path, _, _ in server.seen]
