"""A tab of headless Chromium, driven by its DevTools protocol over a pipe.

    with open_tab(chromium, tmp_path) as tab:
        tab.show(address, size=(390, 844), dark=True)
        tab.run("document.title")

Unlike a page in a frame of another, it takes pages of any server under any
policy, real keys, dark mode and pictures.
"""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["FLAGS", "Tab", "open_tab"]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

_AS_PIPES = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'
_READY = "document.documentElement.dataset.ready === 'true'"


class Tab:
    """One tab; every method waits for the browser's reply."""

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self._requests, self._replies = requests, replies
        self._sent = 0
        self._session: dict[str, str] = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        self.call("Page.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters, **self._session}
        self._requests.write(json.dumps(message).encode() + b"\0")
        self._requests.flush()
        while True:
            reply = json.loads(self._read())
            if reply.get("id") == self._sent:
                assert "error" not in reply, (method, reply["error"])
                return reply["result"]

    def _read(self) -> bytes:
        read = bytearray()
        while (byte := self._replies.read(1)) != b"\0":
            assert byte, "the browser has ended"
            read += byte
        return bytes(read)

    def show(
        self, address: str, *, size: tuple[int, int] = (1440, 900), dark: bool = False
    ) -> None:
        """Open an address and wait for its scripts."""
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait(_READY)

    def type_key(self, key: str) -> None:
        """Type the key that the inspector asks for, which this tab then keeps."""
        self.wait("!!document.querySelector('#key')")
        self.run(f"""
            document.querySelector("#key").value = {json.dumps(key)};
            document.querySelector("dialog form").requestSubmit();
        """)

    def unlock(self, root: str, key: str) -> None:
        """Open the inspector of a server with its key."""
        self.call("Page.navigate", url=f"{root}/inspect/")
        self.type_key(key)
        self.wait(_READY)

    def run(self, script: str) -> Any:
        """The value of an expression, awaited."""
        said = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def wait(self, script: str, seconds: float = 60) -> Any:
        """Wait until an expression is true, and return it; one that fails is not true yet."""
        tried = f"(() => {{ try {{ return ({script}); }} catch {{ return null; }} }})()"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(AssertionError):  # the page may be just leaving for another
                if value := self.run(tried):
                    return value
            time.sleep(0.05)
        said = self.run("document.body.innerText")
        raise AssertionError(f"never true: {script}; the page says {said[-700:]}")

    def press(self, key: str, code: int = 0) -> None:
        """Press a key where the focus is; one sign is typed."""
        typed = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **named, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    def take_picture(self, path: Path) -> None:
        """Write what is in sight as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


@contextmanager
def open_tab(chromium: str, folder: Path) -> Iterator[Tab]:
    """Start a browser with a profile in the folder, and end it."""
    profile = f"--user-data-dir={folder / 'profile'}"
    command = ["sh", "-c", _AS_PIPES, chromium, *FLAGS, "--remote-debugging-pipe", profile]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as browser:
        assert browser.stdin is not None
        assert browser.stdout is not None
        try:
            yield Tab(browser.stdin, browser.stdout)
        finally:
            browser.kill()
