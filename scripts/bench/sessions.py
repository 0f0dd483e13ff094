#!/usr/bin/env python3
"""Does a client remember over twenty turns, and after the server was restarted?

    scripts/bench/sessions.py --model qwen2.5-coder-1.5b

Six clients hold a conversation of 20 turns each with a `mgl up` that this starts: the openai
client, which sends its whole history as chat programs do; LangChain's ChatOpenAI and LlamaIndex's
OpenAI, which send their last message alone; the official MCP client and MCP Inspector (by npx),
which tell with `remember` and ask with `ask_document`; and a person at the page in Chromium, who
says all of it. In turn 2 each is told a fact, in turn 20 it is asked for it, and once more when the
server has been stopped and started. It is right where the reply holds the word that answers; a line
of JSON for each client says so. The home is a new folder, with the weights of MGL_HOME. Needs the
extra ``dev``.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tab import open_tab

from mgl.models import shipped

KEY = "sessions"
MODEL = "mgl/gam"
HEADER = "X-MGL-Conversation"
BRIEF = "Answer in one short sentence."
SMALL_TALK = (
    "Good morning! I am having coffee on the balcony.",
    "The rain has stopped at last.",
    "I have a meeting about the budget at ten.",
    "My neighbour is painting his fence green.",
    "I want to cook lentil soup tonight.",
    "The bus was late again.",
    "I have started to read a novel about a lighthouse.",
    "My desk lamp is broken.",
    "On Saturday I am going to the market.",
    "I slept badly last night.",
    "The new printer at work is very loud.",
    "I planted tomatoes in the big pot.",
    "My phone needs a new battery.",
    "I heard a good song on the radio.",
    "The tea in this café is too strong.",
    "I have to return two books to the library.",
    "Tomorrow I want to go for a swim.",
    "It is getting dark early now.",
)

INSPECTOR = (
    *("npx", "--yes", "-p", "node@22", "-p", "@modelcontextprotocol/inspector@2.12.0"),
    "mcp-inspector",
)

Say = Callable[[str], str]
"""Says one thing in a conversation, and returns the reply."""


@dataclass(frozen=True)
class Session:
    """What one client is told in turn 2, asked in turn 20, and the word that answers."""

    client: str
    told: str
    asked: str
    word: str
    open: Callable[[str, str], Say]

    def talk(self, url: str) -> str:
        """Hold the 20 turns; return the last reply."""
        say = self.open(url, self.client)
        lines = [SMALL_TALK[0], self.told, *SMALL_TALK[1:], self.asked]
        for number, line in enumerate(lines, 1):
            reply = say(line)
            print(f"{self.client} {number}: {line} -> {reply}", file=sys.stderr, flush=True)
        return reply


def open_openai(url: str, name: str) -> Say:
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/v1", api_key=KEY, timeout=600)
    history: list[Any] = [{"role": "system", "content": BRIEF}]

    def say(text: str) -> str:
        history.append({"role": "user", "content": text})
        done = client.chat.completions.create(model=MODEL, messages=history, user=name)
        reply = done.choices[0].message.content or ""
        history.append({"role": "assistant", "content": reply})
        return reply

    return say


def open_langchain(url: str, name: str) -> Say:
    from langchain_core.messages import HumanMessage, SystemMessage
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    model = ChatOpenAI(
        model=MODEL,
        base_url=f"{url}/v1",
        api_key=SecretStr(KEY),
        timeout=600,
        default_headers={HEADER: name},
    )
    return lambda text: str(model.invoke([SystemMessage(BRIEF), HumanMessage(text)]).text)


def open_llamaindex(url: str, name: str) -> Say:
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(
        model=MODEL,
        api_base=f"{url}/v1",
        api_key=KEY,
        is_chat_model=True,
        timeout=600,
        default_headers={HEADER: name},
    )

    def say(text: str) -> str:
        messages = [ChatMessage(role="system", content=BRIEF), ChatMessage(content=text)]
        return model.chat(messages).message.content or ""

    return say


def tell_and_ask(call: Callable[..., Any], name: str) -> Say:
    """Say things by the tools of MCP: questions are asked, all else is remembered."""

    def say(text: str) -> str:
        if text.endswith("?"):
            return str(call("ask_document", document=name, question=text)["answer"])
        return f"turn {call('remember', text=text, conversation=name)['turn']}"

    return say


def open_inspector(url: str, name: str) -> Say:
    server = ["--cli", f"{url}/mcp", "--transport", "http"]
    key = ["--header", f"Authorization: Bearer {KEY}", "--format", "json", "--quiet"]

    def call(tool: str, **arguments: str) -> Any:
        method = ["--method", "tools/call", "--tool-name", tool]
        given = ["--tool-args-json", json.dumps(arguments)]
        command = [*INSPECTOR, *server, *key, *method, *given]
        while True:  # it waits for a minute; the reply that comes later is in the log
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)["result"]["structuredContent"]
            if "Request timed out" not in done.stderr:
                raise RuntimeError(done.stderr + done.stdout)

    return tell_and_ask(call, name)


def open_mcp(url: str, name: str) -> Say:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def call_tool(tool: str, **arguments: str) -> Any:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=600) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            done = await client.call_tool(tool, arguments)
            if done.is_error:
                raise RuntimeError(str(done.content))
            return done.structured_content

    return tell_and_ask(lambda tool, **given: asyncio.run(call_tool(tool, **given)), name)


def open_page(url: str, name: str) -> Say:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError("no Chromium on this machine")
    closing = ExitStack()
    atexit.register(closing.close)
    folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
    tab = closing.enter_context(open_tab(chromium, folder))
    is_open = "location.pathname.endsWith('memory') && document.documentElement.dataset.ready"
    tab.unlock(url, KEY)
    tab.run(f"""
        document.querySelector("#begin").value = {name!r};
        document.querySelector(".begin").requestSubmit();
    """)
    tab.wait(is_open)

    def say(text: str) -> str:
        tab.run("window.asItWas = true; document.querySelector('#question').focus()")
        tab.call("Input.insertText", text=text)
        tab.run("document.querySelector('#say').click()")
        failed = "document.querySelector('.failed')"
        tab.wait(f"{failed} || (!window.asItWas && {is_open})", seconds=900)
        if tab.run(f"!!{failed}"):
            raise RuntimeError(tab.run(f"{failed}.textContent"))
        return str(tab.run("document.querySelector('.asked[open] .answer').textContent"))

    return say


SESSIONS = (
    Session(
        "openai",
        "My sister Ines keeps bees in Trebon.",
        "Where does my sister Ines keep bees?",
        "Trebon",
        open_openai,
    ),
    Session(
        "langchain",
        "By the way, my boat is called Kittiwake.",
        "What is my boat called?",
        "Kittiwake",
        open_langchain,
    ),
    Session(
        "llamaindex",
        "You should know that I am allergic to walnuts.",
        "What am I allergic to?",
        "walnut",
        open_llamaindex,
    ),
    Session(
        "mcp",
        "The code of my bicycle lock is 7342.",
        "What is the code of my bicycle lock?",
        "7342",
        open_mcp,
    ),
    Session(
        "inspector",
        "The spare key lies under the blue flowerpot.",
        "Where does the spare key lie?",
        "flowerpot",
        open_inspector,
    ),
    Session(
        "page",
        "My cousin Teo plays the oboe in Ghent.",
        "Which instrument does my cousin Teo play?",
        "oboe",
        open_page,
    ),
)


@contextmanager
def serve(home: Path, model: str) -> Iterator[str]:
    """Run `mgl up` over a home until the block ends; its URL."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = int(taken.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "mgl", "up", "--port", f"{port}", "--model", model],
        env={**os.environ, "MGL_HOME": str(home), "MGL_UP_KEY": KEY},
        stdout=subprocess.DEVNULL,
    )
    try:
        while process.poll() is None:
            try:
                httpx.get(f"{url}/health", trust_env=False).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--only", choices=[each.client for each in SESSIONS], action="append")
    arguments = parser.parse_args()
    sessions = [
        each for each in SESSIONS if arguments.only is None or each.client in arguments.only
    ]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for name in ("weights", "converted"):
            (home / name).symlink_to(shipped.home() / name)
        for each in sessions:
            start = time.monotonic()
            with serve(home, arguments.model) as url:
                reply = each.talk(url)
            with serve(home, arguments.model) as url:
                again = each.open(url, each.client)(each.asked)
            found = {
                "client": each.client,
                "turn_20": reply,
                "is_right": each.word.lower() in reply.lower(),
                "after_restart": again,
                "is_right_after_restart": each.word.lower() in again.lower(),
                "seconds": round(time.monotonic() - start),
            }
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
