"""What clients of OpenAI, Ollama and llama.cpp send, and expect of a reply, an id and a stream."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from mgl.api.responses import _encode
from tests.api.conftest import DIARY, HORSE, MEMORY, Client, Serve, Served, connect_openai
from tests.api.test_chat import messages, say
from tests.cli.server import story
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from openai import AsyncOpenAI

UNNAMED = {"X-MGL-Conversation": ""}
BESIDES: dict[str, Any] = {
    "top_k": 40,
    "min_p": 0.05,
    "repeat_penalty": 1.1,
    "keep_alive": "5m",
    "chat_template_kwargs": {"enable_thinking": False},
    "reasoning_effort": "low",
    "verbosity": "low",
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
}


@pytest.mark.parametrize("name", ["diary", ""])
async def test_fields_without_effect_are_noted(api: AsyncOpenAI, name: str) -> None:
    headers = {"X-MGL-Conversation": name}
    sent = {**BESIDES, "max_tokens": -1, "seed": -1}
    reply = await say(api, "It rains", extra_body=sent, extra_headers=headers)
    assert reply.notes == [f"{each} has no effect here" for each in BESIDES]
    stream = await api.chat.completions.create(
        model=MEMORY, messages=messages("Hm"), stream=True, extra_body=sent
    )
    events = [event async for event in stream]
    assert events[-1].choices[0].delta.notes == reply.notes  # type: ignore[attr-defined]
    assert not hasattr(await say(api, "It snows", presence_penalty=0), "notes")


@pytest.mark.parametrize("field", [{"n": 2}, {"logprobs": True}, {"functions": [{"name": "f"}]}])
async def test_another_kind_of_reply_is_refused(api: AsyncOpenAI, field: dict[str, Any]) -> None:
    import openai

    with pytest.raises(openai.BadRequestError, match="not served here"):
        await say(api, "It rains", extra_body=field)


async def test_sampling_is_as_it_is_asked_for(served: Served, api: AsyncOpenAI) -> None:
    await say(api, "It rains", temperature=0, max_tokens=7, top_p=0.5, seed=3)
    sampling = served.engine.requests[-1].sampling
    assert (sampling.temperature, sampling.max_tokens) == (0, 7)
    assert (sampling.top_p, sampling.seed) == (0.5, 3)
    await say(api, "It snows", max_completion_tokens=9)
    assert served.engine.requests[-1].sampling.max_tokens == 9
    assert served.engine.requests[-1].sampling.temperature > 0


async def test_a_reply_has_one_id_and_its_time(api: AsyncOpenAI) -> None:
    ids = set()
    for name in ("one", "other"):
        stream = await api.chat.completions.create(
            model=MEMORY,
            messages=messages("Hi"),
            stream=True,
            stream_options={"include_usage": True},
            extra_headers={"X-MGL-Conversation": name},
        )
        events = [event async for event in stream]
        (identity,) = {event.id for event in events}
        (created,) = {event.created for event in events}
        assert abs(created - time.time()) < PATIENCE_S
        ids.add(identity)
    whole = await api.chat.completions.create(model=MEMORY, messages=messages("Hi"))
    assert abs(whole.created - time.time()) < PATIENCE_S
    assert len(ids | {whole.id}) == 3


async def test_texts_are_embedded(served: Served, api: AsyncOpenAI) -> None:
    import openai

    name = (await served.open_tenant("")).memories.lab.embedder
    assert (await api.models.retrieve(name)).id == name
    found = await api.embeddings.create(model=name, input=["a horse", "a horse", "rain"])
    one, same, other = (each.embedding for each in found.data)
    assert one == same != other
    with pytest.raises(openai.NotFoundError, match="no embedder"):
        await api.embeddings.create(model="none", input="a horse")


async def test_responses_are_stored_and_go_on(serve: Serve) -> None:
    import openai

    parts: Any = [{"type": "input_image", "image_url": "x"}]
    parts += [{"type": "input_text", "text": "What is my horse called?"}]
    async with (
        serve() as served,
        connect_openai(served) as api,
        Client(served) as http,
    ):
        first = await api.responses.create(
            model=MEMORY, instructions="Be brief.", input=HORSE, extra_headers=UNNAMED
        )
        assert first.status == "completed"
        assert first.output_text
        assert first.usage is not None
        second = await api.responses.create(
            model=MEMORY,
            input=[{"role": "user", "content": parts}],
            previous_response_id=first.id,
            extra_headers=UNNAMED,
        )
        assert first.conversation is not None
        asked = "[image]\nWhat is my horse called?"
        said = [HORSE, first.output_text, asked, second.output_text]
        assert await http.texts(first.conversation.id) == said
    async with serve() as served, connect_openai(served) as api:  # another process, the same home
        assert (await api.responses.retrieve(second.id)).output_text == second.output_text
        await api.responses.delete(second.id)
        for gone in (second.id, "resp_none"):
            with pytest.raises(openai.NotFoundError):
                await api.responses.retrieve(gone)


async def test_a_second_response_to_the_same_one_replaces_the_first(
    api: AsyncOpenAI, http: Client
) -> None:
    first = await api.responses.create(model=MEMORY, input="It rains", extra_headers=DIARY)
    for text in ("It snows", "It snows", "It hails"):
        last = await api.responses.create(model=MEMORY, input=text, previous_response_id=first.id)
    said = ["It rains", first.output_text, "It hails", last.output_text]
    assert await http.texts() == said
    await api.responses.create(model=MEMORY, input="It thaws", previous_response_id=last.id)
    assert (await http.texts())[:-2] == said


async def test_a_response_names_the_conversation_that_it_goes_on_in(
    api: AsyncOpenAI, http: Client
) -> None:
    """By the id of the one before, too: a client may go on by the conversation's."""
    first = await api.responses.create(model=MEMORY, input="It rains", extra_headers=DIARY)
    second = await api.responses.create(
        model=MEMORY, input="It snows", previous_response_id=first.id
    )
    assert second.conversation is not None
    assert second.conversation.id == "diary"
    await api.responses.create(model=MEMORY, input="It hails", conversation=second.conversation.id)
    assert (await http.texts())[::2] == ["It rains", "It snows", "It hails"]


@pytest.mark.parametrize(
    ("headers", "metadata"),
    [({"X-OpenWebUI-Chat-Id": "garden"}, {}), ({}, {"thread_id": "garden"})],
)
async def test_a_response_belongs_to_the_chat_that_its_client_names(
    api: AsyncOpenAI, http: Client, headers: dict[str, str], metadata: dict[str, str]
) -> None:
    named: Any = {"extra_headers": {**UNNAMED, **headers}, "metadata": metadata}
    first = await api.responses.create(model=MEMORY, input="It rains", **named)
    said = messages("It rains", first.output_text, "It snows")
    second = await api.responses.create(model=MEMORY, input=said, **named)
    texts = ["It rains", first.output_text, "It snows", second.output_text]
    assert await http.texts("garden") == texts


async def test_no_response_is_found_in_a_document(api: AsyncOpenAI, http: Client) -> None:
    import openai

    made = _encode((await http.read(story(8)))["memory_id"], "gam", "1")
    for asked in (
        api.responses.retrieve(made),
        api.responses.delete(made),
        api.responses.create(model=MEMORY, input="Hello", previous_response_id=made),
    ):
        with pytest.raises(openai.NotFoundError):
            await asked


async def test_a_response_is_streamed(api: AsyncOpenAI, http: Client) -> None:
    async with api.responses.stream(model=MEMORY, input="It rains", extra_headers=DIARY) as stream:
        events: list[Any] = [event async for event in stream]
        whole = await stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds.count("response.output_text.delta") > 1
    assert kinds[-1] == "response.completed"
    assert {event.response.id for event in events if hasattr(event, "response")} == {whole.id}
    assert (await api.responses.retrieve(whole.id)).output_text == whole.output_text
    assert (await http.said())[-1] == ("assistant", whole.output_text)


async def test_a_response_that_is_not_to_be_stored_is_not(api: AsyncOpenAI, http: Client) -> None:
    reply = await api.responses.create(
        model=MEMORY, input="It rains", store=False, extra_headers=UNNAMED
    )
    assert reply.output_text
    assert await http.memories() == []
