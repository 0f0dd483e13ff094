"""``mgl mcp``: what a client is to paste."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.conftest import Mgl


def test_what_is_to_be_pasted_starts_it(mgl: Mgl, mgl_home: Path) -> None:
    done = mgl("mcp", "--config", "stdio", "--model", "smollm2-135m")
    own = json.loads(done.stdout)["mcpServers"]["mgl"]
    assert own["command"] == sys.executable
    assert own["args"] == ["-m", "mgl", "mcp", "--model", "smollm2-135m"]
    assert own["env"] == {"MGL_HOME": str(mgl_home)}
    http = json.loads(mgl("mcp", "--config", "http").stdout)["mcpServers"]["mgl"]
    assert http["url"] == "http://127.0.0.1:8788/mcp"
    key = json.loads((mgl_home / "keys.json").read_text())[""]
    assert http["headers"] == {"Authorization": f"Bearer {key}"}
