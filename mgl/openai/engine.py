"""Any server that speaks the OpenAI chat API: vLLM first, llama.cpp and others as they allow.

On connecting it asks the server what it is and finds the model in ``/v1/models``. Replies are
constrained in the strongest format that the server was seen to obey (``response_format`` if it was
not probed). A constraint that the server cannot compile is dropped for the next looser one, at last
for none, and not tried again for schemas of the same shape (some servers take seconds to refuse):
the client validates every reply.

Tokens of texts are counted by the tokenizer that vLLM loaded, if it lies on this machine and counts
as the server does: a novel has thousands of sentences, and a server takes one at a time. Else the
server counts them (``/tokenize`` of vLLM or llama.cpp). Without either they are *estimated* as one
token for three bytes of UTF-8, which is more than models use for most languages, so that budgets
hold. A reply's time is bounded by ``mgl.llm.client``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from mgl.errors import EngineError, EngineFailed, EngineRejected, UsageError
from mgl.llm.base import Completion, Request
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.control import ControlTokens, select_control, unmark
from mgl.llm.progress import TokenProgress, find_listener
from mgl.llm.replies import clean
from mgl.models.hub import find_cached
from mgl.models.profiles import HubSource, ModelProfile
from mgl.openai.errors import ConstraintRefused, ServerFailed
from mgl.openai.formats import UNPROBED, Format, Formats, shape_of
from mgl.openai.replies import join_events, read_completion, read_event
from mgl.openai.requests import write_body, write_messages, write_tools
from mgl.openai.servers import PROBE_SECONDS, Http, Server, identify, require_adapter
from mgl.openai.shapes import ChatEvent

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONCURRENCY: Final = 32
"""Servers queue what they cannot take at once; the wait counts in a call's time-out."""
# The second shows an engine that died behind a server that still answers the first.
_WITHOUT_PROMPT: Final = ("/v1/models", "/health")
_BYTES_PER_TOKEN: Final = 3
_SAMPLE: Final = "Größe: 12,345 km²\n\n\tdef f(x):  return 'Ωμέγα'  # 東京 🚲 isn't\r\n"
# The makes that report the usage of a streamed reply.
_COUNT_STREAMED: Final = ("vllm", "llama.cpp", "ollama", "lm studio")


class OpenAIEngine:
    """A model behind a URL. Make it with ``connect``; ``transport`` carries its requests."""

    concurrency = CONCURRENCY
    transport: ClassVar[type[Http]] = Http

    def __init__(
        self, http: Http, server: Server, profile: ModelProfile, formats: Formats, model_id: str
    ) -> None:
        self._http = http
        self._server = server
        self._streams = server.kind in _COUNT_STREAMED
        self._progress: TokenProgress | None = None
        self._control = ControlTokens(families=True)
        self._tokenizer: Tokenizer | None = None
        self._has_looked = False  # for that tokenizer
        self._looking = asyncio.Lock()
        self._formats = formats
        self._failed: set[tuple[str, str]] = set()  # format and shape
        self.model_id = model_id
        self.native_tools = profile.native_tools
        own = profile.context_tokens
        self.context_tokens = min(own, server.context_tokens or own)

    @classmethod
    async def connect(
        cls,
        endpoint: ServerEndpoint,
        profile: ModelProfile,
        *,
        model_id: str,
        progress: TokenProgress | None = None,
    ) -> Self:
        """Connect to a server that serves the model.

        The server may use the publisher's name, the profile's, or a path that ends in one of them.
        The context is the smaller of the server's and the profile's. Raises EngineUnavailable,
        EngineTimeout or EngineRejected.
        """
        http = cls.transport(endpoint.base_url, endpoint.api_key)
        try:
            server = await identify(http, profile.served_names)
            if endpoint.adapter is not None:
                await require_adapter(http, endpoint.adapter, server.model)
                server = replace(server, model=endpoint.adapter)
        except BaseException:
            await http.aclose()
            raise
        seen = endpoint.capabilities
        formats = Formats.from_probe(seen.formats, seen.ignored) if seen else UNPROBED
        engine = cls(http, server, profile, formats, model_id)
        engine._progress = progress
        return engine

    async def generate(self, request: Request) -> Completion:
        await self._open_tokenizer()
        request, mark = self._control.mark(request)
        async for loosened, format_, body in self._bodies(request):
            try:
                answer = await self._complete(body, request, mark)
            except ConstraintRefused:
                if format_ is None:
                    raise
                self._failed.add((format_.name, shape_of(request)))
                continue
            except EngineFailed:
                # vLLM fails at a reply that has to spell out a control token.
                if format_ is None or not self._has_control(request):
                    raise
                continue
            completion = _unmark(read_completion(answer, request, format_), mark)
            looser = self._formats.for_request(request)[loosened + 1 :]
            if format_ is not None and looser and _disobeys(completion, request):
                self._failed.add((format_.name, shape_of(request)))
            return replace(completion, loosened=loosened)
        raise AssertionError("the last body is sent without a constraint")

    async def _complete(self, body: dict[str, Any], request: Request, mark: str) -> Any:
        """The answer to a chat request; streamed if that shows progress and loses nothing."""
        progress = self._progress
        if progress is None or request.tools or request.choices or not self._streams:
            return await self._guard(self._http.post("chat/completions", body, None))
        events: list[ChatEvent] = []
        call, written, text = object(), 0, ""
        listener = find_listener()
        prompt = _estimate_tokens(json.dumps(write_messages(request), ensure_ascii=False))
        budget = request.sampling.max_tokens

        def hear(sent: Any) -> None:
            nonlocal written, text
            events.append(event := read_event(sent))
            text += event.text
            if listener is not None:
                listener(unmark(text, mark))
            written += bool(event.choices)
            progress.update(call, read=prompt, prompt=prompt, written=written, budget=budget)

        streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
        progress.update(call, read=0, prompt=prompt, budget=budget)
        try:
            answer = await self._guard(self._http.stream("chat/completions", streamed, hear))
            return join_events(events) if answer is None else answer
        finally:
            progress.end(call)

    async def _bodies(
        self, request: Request
    ) -> AsyncIterator[tuple[int, Format | None, dict[str, Any]]]:
        """The bodies to try, the strongest constraint first, each with how many were dropped."""
        formats = self._formats.for_request(request)
        for loosened, one in enumerate(formats):
            if self._failed and (one.name, shape_of(request)) in self._failed:
                continue
            try:
                body = await asyncio.to_thread(write_body, request, self._server.model, one)
            except UsageError:
                continue
            yield loosened, one, body
        yield len(formats), None, write_body(request, self._server.model)

    def _has_control(self, request: Request) -> bool:
        """Whether a request's constraint spells out a control token."""
        held = json.dumps([request.json_schema, request.choices], ensure_ascii=False)
        return len(self._control.cut(held)) > 1

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        await self._open_tokenizer()
        texts = [self._control.spell(text) for text in texts]
        if self._tokenizer is not None:
            return await asyncio.to_thread(_count, self._tokenizer, texts)
        slots = asyncio.Semaphore(CONCURRENCY)

        async def count(text: str) -> int:
            async with slots:
                return await self._count_text(text)

        return list(await asyncio.gather(*(count(text) for text in texts)))

    async def count_prompt_tokens(self, request: Request) -> int:
        await self._open_tokenizer()
        request, _ = self._control.mark(request)
        if self._server.kind == "vllm":
            body: dict[str, Any] = {
                "model": self._server.model,
                "messages": write_messages(request),
                "add_generation_prompt": True,
            }
            if request.tools:
                body["tools"] = write_tools(request)
            return int((await self._post("/tokenize", body))["count"])
        if self._server.kind == "llama.cpp":
            body = {"messages": write_messages(request)}
            prompt = str((await self._post("/apply-template", body))["prompt"])
            return await self._count_text(prompt)
        written = json.dumps([write_messages(request), write_tools(request)], ensure_ascii=False)
        return _estimate_tokens(written)

    async def _open_tokenizer(self) -> None:
        """Look for the tokenizer once; if found, collect all its control tokens."""
        async with self._looking:
            if not self._has_looked:
                self._tokenizer = await self._find_tokenizer()
                if self._tokenizer is not None:
                    added = self._tokenizer.get_added_tokens_decoder().values()
                    self._control = ControlTokens(select_control(added), families=True)
                self._has_looked = True

    async def _find_tokenizer(self) -> Tokenizer | None:
        """The tokenizer of the server's weights, if it is here and counts as the server does."""
        if self._server.kind != "vllm" or not self._server.weights:
            return None
        tokenizer = await asyncio.to_thread(_load_tokenizer, self._server.weights)
        if tokenizer is None:
            return None
        (own,) = _count(tokenizer, [_SAMPLE])
        return tokenizer if own == await self._count_text(_SAMPLE) else None

    async def _count_text(self, text: str) -> int:
        if self._server.kind == "vllm":
            body = {"model": self._server.model, "prompt": text, "add_special_tokens": False}
            return int((await self._post("/tokenize", body))["count"])
        if self._server.kind == "llama.cpp":
            body = {"content": text, "add_special": False}
            return len((await self._post("/tokenize", body))["tokens"])
        return _estimate_tokens(text)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return await self._guard(self._http.post(path, body))

    async def _guard(self, answer: Awaitable[Any]) -> Any:
        """Await, or raise EngineFailed if the server fails at this and answers other requests."""
        try:
            return await answer
        except ServerFailed as failure:
            if not await self._answers_others():
                raise
            raise EngineFailed(
                failure.message, hint="look at the server's log: it fails at this request only"
            ) from failure

    async def _answers_others(self) -> bool:
        for path in _WITHOUT_PROMPT:
            try:
                await self._http.get_text(path, PROBE_SECONDS)
            except EngineRejected:
                continue  # a server without this path has answered
            except EngineError:
                return False
        return True

    async def aclose(self) -> None:
        await self._http.aclose()


def _load_tokenizer(weights: str) -> Tokenizer | None:
    """The tokenizer in a folder of weights, or of a repository in the hub's cache; None if it is
    not on this machine."""
    from tokenizers import Tokenizer

    name, folder = "tokenizer.json", Path(weights)
    file = folder / name if folder.is_dir() else find_cached(HubSource(repo=weights, file=name))
    if file is None or not file.is_file():
        return None
    tokenizer: Tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _count(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [len(one) for one in encoded]


def _unmark(completion: Completion, mark: str) -> Completion:
    """Take out what was marked in the request, where a reply repeats it."""
    if not mark:
        return completion
    calls = tuple(
        replace(call, name=unmark(call.name, mark), arguments=unmark(call.arguments, mark))
        for call in completion.tool_calls
    )
    return replace(completion, text=unmark(completion.text, mark), tool_calls=calls)


def _disobeys(completion: Completion, request: Request) -> bool:
    """Whether a complete reply shows that its constraint was silently ignored."""
    if completion.finish_reason != "stop":
        return False
    text = clean(completion.text)
    if not text:
        return False
    if request.choices:
        return text not in request.choices
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def _estimate_tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)
