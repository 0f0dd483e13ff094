"""What the integrations ask of a running `mgl up`, by its REST API.

client = Client()                      # this machine's server, with the home's key
client.add("diary", [{"speaker": "user", "text": "I moved to Lisbon."}])
client.search("diary", "Where do I live?")
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

import httpx

from mgl.api.keys import KEY, OWNER, Keys
from mgl.errors import EngineUnavailable, UsageError
from mgl.models import shipped
from mgl.openai.errors import NotServed

URL: Final = "http://127.0.0.1:8788"
LONGEST_S: Final = 300.0
"""Seconds for an answer: deleting from a large memory takes the longest."""


class RestClient:
    """Asks a server. Safe from several threads.

    ``base_url`` is what `mgl up` printed, with or without ``/v1``. Without ``api_key`` it is
    MGL_UP_KEY, else the key in MGL_HOME. Errors: EngineUnavailable where no server answers,
    NotServed for a memory that is not there, UsageError for what the server refuses.
    """

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        key = api_key or Keys.open(shipped.home(), os.environ.get(KEY)).add(OWNER)
        self._http = httpx.Client(
            base_url=(base_url or URL).rstrip("/").removesuffix("/v1"),
            headers={"Authorization": f"Bearer {key}"},
            timeout=LONGEST_S,
            limits=httpx.Limits(max_keepalive_connections=0),  # so that nothing needs to be closed
            trust_env=False,
        )

    def add(self, conversation: str, turns: Sequence[Mapping[str, Any]]) -> list[str]:
        """Add turns (``text``, ``speaker``, ``time``) to a conversation; return their ids."""
        said = self._ask("POST", f"conversations/{_quote(conversation)}/turns", {"turns": turns})
        ids: list[str] = said["turns"]
        return ids

    def search(self, memory: str, query: str, limit: int) -> list[dict[str, Any]]:
        """Find turns of a conversation, or nodes of a document, the best first.

        ``memory`` is a memory's id, or the exact name of a conversation or document.
        """
        return self._search(f"memories/{_quote(memory)}", query, limit)

    def search_conversation(self, name: str, query: str, limit: int) -> list[dict[str, Any]]:
        """Find turns of the conversation of this exact name, the best first."""
        return self._search(f"conversations/{_quote(name)}", query, limit)

    def turns(self, conversation: str) -> list[dict[str, Any]]:
        """All turns that were not deleted; none of a conversation that has not begun."""
        try:
            held = self._ask("GET", f"conversations/{_quote(conversation)}/export")
        except NotServed:
            return []
        turns: list[dict[str, Any]] = held["turns"]
        return turns

    def forget(self, conversation: str, turns: Collection[str]) -> list[str]:
        """Delete turns for good; return those that are gone."""
        path = f"conversations/{_quote(conversation)}/forget"
        gone: list[str] = self._ask("POST", path, {"turns": [*turns]})["turns"]
        return gone

    def delete(self, conversation: str) -> None:
        """Delete a conversation for good, with its name; one that is not there is passed over."""
        with suppress(NotServed):
            self._ask("DELETE", f"conversations/{_quote(conversation)}")

    def _search(self, path: str, query: str, limit: int) -> list[dict[str, Any]]:
        answer = self._ask("GET", f"{path}/search", q=query, limit=limit)
        found: list[dict[str, Any]] = answer["results"]
        return found

    def _ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        try:
            answer = self._http.request(method, f"/api/{path}", json=body, params=query)
        except httpx.HTTPError as error:
            raise EngineUnavailable(
                f"no memory answers at {self._http.base_url} ({type(error).__name__})",
                hint="start one with `mgl up`",
            ) from error
        if answer.is_success:
            return answer.json()
        kind = NotServed if answer.status_code == 404 else UsageError
        try:
            said = answer.json()["error"]["message"]
        except (ValueError, LookupError, TypeError):
            said = answer.text[:200]
        raise kind(said, hint=f"{method} {answer.url.path} gave {answer.status_code}")


def describe_found(found: Mapping[str, Any]) -> str:
    """What a search found as text for a prompt: who said a turn and when, or what a node says."""
    if "content" in found:
        return ": ".join(filter(None, (found["label"], found["content"])))
    day = (found.get("time") or "")[:10]
    who = ", ".join(filter(None, (found.get("speaker"), day)))
    return f"{who}: {found['quote']}" if who else str(found["quote"])


def _quote(name: str) -> str:
    return quote(name, safe="")
