from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import EngineUnavailable, EngineUnusable
from mgl.lab import Lab, ModelChoice
from mgl.llm.capabilities import Capabilities
from mgl.serving.probe import QUESTIONS, SUBSTRING, probe, probe_once, probe_pooling
from tests.cli.server import serving as serving_story
from tests.cli.server import story
from tests.openai.answering import MODEL, Answered, Server, chat, models, serving
from tests.serving.makes import (
    IGNORANT,
    LLAMA,
    LM_STUDIO,
    OLD_VLLM,
    OLLAMA,
    OUTLINES,
    STRUCTURED,
    VLLM,
    Make,
    constraints,
    running,
)


async def probed(make: Make, **routes: Any) -> Capabilities:
    with running(make, **routes) as server:
        return await probe(f"{server.url}/v1", None)


def verdicts(honoured: Capabilities) -> dict[str, str]:
    return {found.name: found.verdict for found in honoured.findings}


@pytest.mark.parametrize(
    ("make", "ways", "ignored"),
    [
        (VLLM, (*STRUCTURED, "response_format"), ()),
        (OLD_VLLM, ("response_format",), STRUCTURED),
        (OUTLINES, (STRUCTURED[0], *STRUCTURED[3:], "response_format"), ()),
        (LLAMA, ("grammar (gbnf)", "response_format"), ()),
        (OLLAMA, ("response_format",), ()),
        (LM_STUDIO, ("response_format",), ()),
    ],
    ids=["vllm", "old vllm", "outlines", "llama.cpp", "ollama", "lm studio"],
)
async def test_each_make_is_known_and_what_it_honours_is_found(
    make: Make, ways: tuple[str, ...], ignored: tuple[str, ...]
) -> None:
    honoured = await probed(make)
    assert (honoured.server, honoured.model) == (make.label, MODEL)
    assert honoured.formats == ways
    assert honoured.ignored == ignored
    assert honoured.tools is (make.tools is True)
    assert honoured.logprobs is make.logprobs
    assert honoured.cached_tokens is make.cached
    assert honoured.is_complete


async def test_what_else_mgl_takes_from_vllm_is_tried() -> None:
    listing = models(max_model_len=4096, owned_by="vllm", parent=None)
    listing["data"].append({"id": "edits-1", "max_model_len": 4096, "parent": MODEL})
    found = await probed(VLLM, **{"/v1/models": listing})
    said = {one.name: (one.verdict, one.said) for one in found.findings}
    assert said["/tokenize"] == ("honoured", "14 tokens")
    assert said["adapters in the list of models"] == ("honoured", "edits-1")
    older = models(max_model_len=4096, owned_by="vllm")
    lacking = await probed(VLLM, **{"/v1/models": older, "/tokenize": {"tokens": []}})
    assert verdicts(lacking)["/tokenize"] == "refused"
    assert verdicts(lacking)["adapters in the list of models"] == "ignored"
    assert lacking.is_complete
    assert "/tokenize" not in verdicts(await probed(OLLAMA))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"reasoning": "A capital."}, "Paris. (thoughts are split off into reasoning)"),
        ({"reasoning_content": "Hm."}, "Paris. (thoughts are split off into reasoning_content)"),
        ({"content": "<think>Hm</think>Paris."}, "thoughts are in the reply"),
        ({"reasoning": None}, "Paris."),
    ],
)
async def test_it_is_said_where_thoughts_go(message: dict[str, Any], said: str) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if "structured_outputs" in body or "response_format" in body or "tools" in body:
            return VLLM.answer(body)
        return chat(message.get("content", "Paris."), message=message)

    found = await probed(VLLM, **{"/v1/chat/completions": answer})
    control = found.findings[0].said
    assert control.endswith(f"{said}" if said.startswith("Paris") else f"({said})")


async def test_a_pooling_server_is_tried_by_its_own_endpoints() -> None:
    vector = {"data": [{"index": 0, "embedding": [0.6, 0.8]}]}

    def rerank(body: dict[str, Any]) -> Any:
        scores = [0.9 if "Paris" in text else 0.2 for text in body["documents"]]
        return {"results": [{"index": n, "relevance_score": s} for n, s in enumerate(scores)]}

    routes = {"/v1/models": models(max_model_len=512), "/version": {"version": "0.32.0"}}
    with serving({**routes, "/v1/embeddings": vector, "/v1/rerank": rerank}) as server:
        both = await probe_pooling(server.url, None, MODEL)
    assert [one.verdict for one in both] == ["honoured", "honoured"]
    assert [one.said for one in both] == ["2 dimensions", "0.9 for the answer, 0.2 beside"]
    noise = {"results": [{"index": n, "relevance_score": 0.5} for n in range(2)]}
    with serving({**routes, "/v1/rerank": noise, "/v1/embeddings": {"data": []}}) as server:
        neither = await probe_pooling(server.url, None, MODEL)
    assert [one.verdict for one in neither] == ["refused", "ignored"]


async def test_a_server_that_ignores_every_constraint_is_told_as_such() -> None:
    honoured = await probed(IGNORANT)
    assert honoured.formats == ()
    assert set(honoured.ignored) == {*STRUCTURED, "grammar (gbnf)", "response_format"}
    assert honoured.warning is not None
    assert "silently ignored: structured_outputs.choice" in honoured.warning
    assert "\n" not in honoured.warning


async def test_lark_without_verbatim_parts_is_another_lark() -> None:
    def answer(body: dict[str, Any]) -> Any:
        if "%regex" in str(constraints(body).get(STRUCTURED[1])):
            return Answered(400, {"error": {"message": "Invalid grammar specification."}})
        return VLLM.answer(body)

    honoured = await probed(VLLM, **{"/v1/chat/completions": answer})
    assert verdicts(honoured)[STRUCTURED[1]] == "honoured"
    assert verdicts(honoured)[SUBSTRING] == "refused"
    assert STRUCTURED[1] not in honoured.formats
    assert honoured.formats[:2] == (STRUCTURED[0], STRUCTURED[2])


async def test_a_model_that_thinks_is_given_room_for_it() -> None:
    def answer(body: dict[str, Any]) -> Any:
        if "response_format" in body and body["max_tokens"] < 1000:
            return chat("<think>The user wants", "length")
        if "response_format" in body:
            return chat('<think>The user wants a word.</think>{"word": "qibro"}')
        return chat("It is Paris.")

    honoured = await probed(OLLAMA, **{"/v1/chat/completions": answer})
    assert honoured.formats == ("response_format",)


async def test_a_forced_call_shows_what_a_weak_model_would_not_call() -> None:
    def answer(body: dict[str, Any]) -> Any:
        return LLAMA.answer(body) if "tool_choice" in body else chat("I cannot.")

    assert (await probed(LLAMA, **{"/v1/chat/completions": answer})).tools


async def test_the_probe_asks_nothing_but_its_questions() -> None:
    with running(IGNORANT) as server:
        await probe(server.url, None)
        asked = {body["messages"][-1]["content"] for body in server.bodies()}
        assert asked == {*QUESTIONS}
        assert all(body["max_tokens"] <= 48 for body in server.bodies())


async def test_the_model_asked_for_is_tried() -> None:
    listing = models("first")
    listing["data"].append({"id": MODEL})
    with running(OLLAMA, **{"/v1/models": listing}) as server:
        assert (await probe(server.url, None)).model == "first"
        assert (await probe(server.url, None, MODEL)).model == MODEL
        with pytest.raises(EngineUnusable):
            await probe(server.url, None, "other")


# A server that cannot be tried is an error, and is not taken for one that honours nothing.


async def test_a_server_that_answers_no_plain_question() -> None:
    with pytest.raises(EngineUnavailable):
        await probed(VLLM, **{"/v1/chat/completions": Answered(503, {"error": "overloaded"})})


# What was found is kept.


async def found(server: Server, home: Path, notes: list[str] | None = None) -> Capabilities:
    names = (MODEL, "qwen2.5-7b-instruct")
    hears = notes.append if notes is not None else lambda _: None
    return await probe_once(server.url, None, names, home, hears)


async def test_a_server_is_tried_once_and_one_of_another_version_anew(tmp_path: Path) -> None:
    with running(OLD_VLLM) as server:
        notes: list[str] = []
        first = await found(server, tmp_path, notes)
        assert "response_format" in first.formats[0]
        asked = len(server.bodies())
        assert server.url in notes[0]
        assert "accepts and ignores" in notes[-1]
        said = len(notes)
        assert await found(server, tmp_path, notes) == first
        assert (len(server.bodies()), len(notes)) == (asked, said)
        server.routes |= VLLM.routes
        server.routes["/v1/chat/completions"] = VLLM.answer
        assert (await found(server, tmp_path)).formats[0] == STRUCTURED[0]


async def test_a_trial_without_an_answer_is_not_kept(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> Any:
        broken = "response_format" in body
        return Answered(503, {"error": "busy"}) if broken else LLAMA.answer(body)

    with running(LLAMA, **{"/v1/chat/completions": answer}) as server:
        honoured = await found(server, tmp_path)
        assert verdicts(honoured)["response_format"] == "failed"
        assert honoured.formats == ("grammar (gbnf)",)
        server.routes["/v1/chat/completions"] = LLAMA.answer
        assert (await found(server, tmp_path)).formats == ("grammar (gbnf)", "response_format")


def test_a_lab_tries_its_server_once_and_sends_what_is_honoured(
    tmp_path: Path, mgl_home: Path
) -> None:
    book = tmp_path / "book.txt"
    book.write_text(story(4))
    with serving_story() as server:
        for question in ("Who met P1?", "Who met P2?"):
            with Lab.open(ModelChoice("qwen2.5-7b-instruct", base_url=server.url)) as lab:
                built = lab.ask(book, question)
                calls = lab.calls(built.memory_id)
        once = server.probes
        assert once > 5
        read = [call.completion for call in calls if call.stage == "build" and call.completion]
        assert {completion.way for completion in read} == {"response_format"}
        assert all("structured_outputs" not in body for body in server.seen)
    assert (mgl_home / "servers" / "probed.json").exists()
    with serving_story() as server:
        with Lab.open(ModelChoice("qwen2.5-7b-instruct", base_url=server.url)) as lab:
            lab.ask(book, "Who met P3?")
        assert server.probes == once


@pytest.mark.server
async def test_a_real_vllm_honours_what_it_says() -> None:
    if not os.environ.get("MGL_BASE_URL"):
        pytest.skip("MGL_BASE_URL names no server")
    honoured = await probe(os.environ["MGL_BASE_URL"], os.environ.get("MGL_API_KEY"))
    if not honoured.server.startswith("vllm"):
        pytest.skip(f"the server is {honoured.server}")
    assert {"structured_outputs.json", "response_format"} <= set(honoured.formats)
    assert honoured.ignored == ()
    assert honoured.logprobs
    assert honoured.is_complete
