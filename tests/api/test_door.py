"""Who may ask the server, and how much: each rule by a request that breaks it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from mgl.api.keys import OWNER, Keys, tenant_folder
from mgl.api.limits import Bucket, Limits
from mgl.api.memories import Memories
from mgl.api.server import check_host
from mgl.errors import ResourceError, UsageError
from mgl.lab.talk import Talk
from mgl.models import shipped
from mgl.openai.errors import OverLimit
from mgl.openai.listening import read_limited
from tests.api.conftest import HORSE, MEMORY, Client, Serve, Served, open_server
from tests.privileges import no_umask, shared_paths

MODELS = "/v1/models"
HELLO = {"role": "user", "content": "Hello"}


async def get(served: Served, path: str = MODELS, **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {served.key}", **headers}
    async with httpx.AsyncClient(base_url=served.root, headers=given) as http:
        return await http.get(path)


async def test_it_listens_on_this_machine_and_wants_its_key(served: Served) -> None:
    assert served.root.startswith("http://127.0.0.1:")
    assert (await get(served)).status_code == 200
    for right in (f"bearer {served.key}", f"BEARER {served.key}", f"Bearer  {served.key}"):
        assert (await get(served, Authorization=right)).status_code == 200
    for wrong in (
        *("", "Bearer", "Bearer wrong", f"Bearer {served.key}x", served.key[:-1]),
        *(served.key, f"Basic {served.key}", f"Bearer: {served.key}", f"Bearer{served.key}"),
    ):
        assert (await get(served, Authorization=wrong)).status_code == 401
    for name in ("key", "api_key", "access_token", "token", "authorization"):
        path = f"{MODELS}?{name}={served.key}"
        assert (await get(served, path, Authorization="")).status_code == 401
    assert (await get(served, "/health", Authorization="")).json() == {"status": "ok"}


ANOTHER_SITE = [
    {"Host": "evil.example"},
    {"Host": "evil.example:80"},
    {"Host": "127.0.0.1.evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost.evil.example"},
]


async def test_a_page_of_another_site_is_refused(served: Served) -> None:
    """A name that was rebound to 127.0.0.1, and a page that asks across origins, key or not."""
    for headers, path in product(ANOTHER_SITE, (MODELS, "/health")):
        answer = await get(served, path, **headers)
        assert answer.status_code == 401, headers
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_no_browser_is_allowed_to_read_across_origins(serve: Serve) -> None:
    async with serve() as served, httpx.AsyncClient(base_url=served.root) as http:
        asked = {"Origin": served.root, "Access-Control-Request-Method": "POST"}
        key = {"Authorization": f"Bearer {served.key}"}
        for answer in (
            await http.options("/v1/chat/completions", headers={**asked, **key}),
            await http.get(MODELS, headers={**asked, **key}),
        ):
            assert not [name for name in answer.headers if name.startswith("access-control")]


def test_another_host_wants_a_key_of_ones_own() -> None:
    check_host("127.0.0.1", has_own_key=False)
    check_host("192.168.1.5", has_own_key=True)
    for host in ("0.0.0.0", "::", "192.168.1.5", "my-machine"):
        with pytest.raises(UsageError, match="no key was given"):
            check_host(host, has_own_key=False)


async def test_a_server_for_all_is_asked_by_address_and_by_no_foreign_name(served: Served) -> None:
    served.host = "0.0.0.0"
    assert (await get(served, Host="192.168.1.5:80")).status_code == 200
    assert (await get(served, Host="evil.example")).status_code == 401


async def test_a_body_is_read_up_to_its_limit(serve: Serve) -> None:
    async with serve(limits=Limits(most_bytes=1000)) as served:
        given = {"Authorization": f"Bearer {served.key}"}
        async with httpx.AsyncClient(base_url=served.root, headers=given) as http:
            declared = await http.post("/v1/chat/completions", content=b"x" * 1001)
            assert declared.status_code == 413

            async def stream() -> AsyncIterator[bytes]:  # which says nothing of its length
                for _ in range(20):
                    yield b"x" * 100

            assert (await http.post("/v1/chat/completions", content=stream())).status_code == 413
            fits = await http.post("/v1/chat/completions", content=b"x" * 1000)
            assert fits.status_code == 400


async def test_a_body_has_to_come_in_time() -> None:
    class Slow:
        headers: dict[str, str] = {}  # noqa: RUF012

        async def stream(self) -> AsyncIterator[bytes]:
            yield b"a"
            await asyncio.sleep(5)

    with pytest.raises(OverLimit, match="did not come within") as caught:
        await read_limited(Slow(), within=0.05)  # type: ignore[arg-type]
    assert caught.value.status == 408


async def test_a_tenant_that_asks_too_often_waits_and_others_do_not(serve: Serve) -> None:
    async with serve(limits=Limits(3), tenants=["ann"]) as served:
        assert [(await get(served)).status_code for _ in range(4)] == [200, 200, 200, 429]
        ann = Keys.open(served._keys.home).add("ann")
        assert (await get(served, Authorization=f"Bearer {ann}")).status_code == 200


async def test_wrong_keys_are_counted_apart(served: Served) -> None:
    served._wrong = Bucket(2)
    found = [(await get(served, Authorization="Bearer no")).status_code for _ in range(3)]
    assert found == [401, 401, 429]
    assert (await get(served)).status_code == 200


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    bucket = Bucket(60, lambda: now[0])
    for _ in range(60):
        bucket.take("ann")
    with pytest.raises(OverLimit):
        bucket.take("ann")
    now[0] = 1.0
    bucket.take("ann")
    with pytest.raises(OverLimit):
        bucket.take("ann")


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    made = Keys.open(tmp_path).add(OWNER)
    path = tmp_path / "keys.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = Keys.open(tmp_path)
    assert again.add(OWNER) == made
    ann = again.add("ann")
    assert again.find_tenant(ann) == "ann"
    assert again.find_tenant(made) == OWNER
    assert again.find_tenant("") is None
    own = Keys.open(tmp_path, "mine")
    assert (own.find_tenant("mine"), own.find_tenant(made), own.find_tenant(ann)) == (
        OWNER,
        None,
        "ann",
    )
    own.add("bo")
    assert "mine" not in path.read_text()
    with pytest.raises(UsageError, match="is a tenant's"):
        Keys.open(tmp_path, ann)
    for unsendable in ("schlüssel", "two words", "line\nend"):
        with pytest.raises(UsageError, match="cannot be sent"):
            Keys.open(tmp_path, unsendable)
    path.write_text("[1]")
    with pytest.raises(ResourceError, match="cannot be read"):
        Keys.open(tmp_path)


@pytest.mark.parametrize("name", ["..", "../up", "a/b", "A", "", ".", "a" * 65, "a\n", "-a"])
def test_a_tenant_is_no_path(tmp_path: Path, name: str) -> None:
    if name:
        with pytest.raises(UsageError):
            tenant_folder(tmp_path, name)
    else:
        assert tenant_folder(tmp_path, name) == tmp_path


SECRET = "my horse is called Star"


def fail(*_: Any, **__: Any) -> Any:
    raise KeyError(SECRET)


async def test_a_fault_has_an_id_that_the_log_has_and_tells_no_words_or_keys(
    served: Served,
    http: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await http.append(SECRET)
    for part, name in ((Memories, "list_all"), (Talk, "respond"), (Talk, "aanswer")):
        monkeypatch.setattr(part, name, fail)
    asked = {"model": MEMORY, "user": "diary", "messages": [HELLO]}
    events = {"accept": "text/event-stream"}
    question = {"question": SECRET}
    answers = [
        await http.get("/api/memories"),
        await http.post("/v1/chat/completions", json=asked),
        await http.post("/v1/chat/completions", json={**asked, "stream": True}),
        await http.post("/api/memories/diary/ask", json=question),
        await http.post("/api/memories/diary/ask", json=question, headers=events),
    ]
    monkeypatch.setattr(served, "open_tenant", fail)
    answers.append(await http.get("/v1/models"))
    fine = await http.get("/health")
    assert [answer.status_code for answer in answers] == [500] * 6
    for answer in answers:
        error = answer.json()["error"]
        assert (error["code"], error["type"]) == ("internal_error", "server_error")
        assert error["request_id"] == answer.headers["x-request-id"]
        assert error["request_id"] in caplog.text
        assert SECRET not in answer.text
    assert len({answer.headers["x-request-id"] for answer in (*answers, fine)}) == 7
    assert SECRET not in caplog.text
    assert served.key not in caplog.text


async def test_what_is_refused_has_an_id_as_well(served: Served) -> None:
    for answer in (await get(served, Authorization=""), await get(served, "/none")):
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]


async def test_nothing_that_a_server_keeps_is_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "made" / "home"
    monkeypatch.setenv("MGL_HOME", str(home))
    with no_umask():
        shipped.home()
        async with open_server(home, tenants=["ann"]) as served:
            for key in (served.key, Keys.open(home).add("ann")):
                async with Client(served, key) as http:
                    await http.append(HORSE)
                    await http.chat("Hello")
                    await http.upload("P1 met P2.")
            kept = {path.name for path in home.rglob("*")}
            assert shared_paths(tmp_path / "made") == []
    assert {"keys.json", "mgl.sqlite", "mgl.sqlite-wal", "jobs", "tenants"} <= kept
    assert shared_paths(tmp_path / "made") == []
