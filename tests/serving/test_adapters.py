from __future__ import annotations

from pathlib import Path

import pytest

from mgl.errors import EngineRejected, EngineUnavailable, UsageError
from mgl.serving.adapters import list_adapters, load_adapter, unload_adapter
from mgl.serving.records import ServerRecord
from tests.serving.conftest import free_port, plan_of
from tests.serving.supervised import Supervised


def test_an_adapter_is_loaded_listed_and_unloaded(mgl_home: Path, port: int) -> None:
    with Supervised(mgl_home, plan_of(port)) as supervised:
        server = supervised.ready()
        url, key = server.base_url, server.api_key
        assert list_adapters(url, key) == {}
        load_adapter(url, key, "tales", Path("/adapters/tales"))
        assert list_adapters(url, key) == {"tales": "tiny"}
        with pytest.raises(UsageError):
            load_adapter(url, key, "tales", Path("/adapters/other"))
        unload_adapter(url, key, "tales")
        assert list_adapters(url, key) == {}
        with pytest.raises(UsageError):
            unload_adapter(url, key, "tales")
        _refusals(server)


def _refusals(server: ServerRecord) -> None:
    with pytest.raises(EngineRejected):
        load_adapter(server.base_url, server.api_key, "odd", Path("/adapters/misfit"))
    with pytest.raises(EngineRejected):
        list_adapters(server.base_url, "wrong")


def test_no_server_there() -> None:
    with pytest.raises(EngineUnavailable):
        list_adapters(f"http://127.0.0.1:{free_port()}/v1", None)
