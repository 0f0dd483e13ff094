"""Code that attacks the process it runs in, and what is left of it."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import psutil
import pytest

from mgl.baselines import sandbox
from mgl.baselines.sandbox import MODULES, OUTPUT_CHARS, Sandbox
from mgl.errors import UsageError
from tests.patience import PATIENCE_S, wait_until

ATTACKING = (*MODULES, "ctypes", "encodings.idna", "os", "socket", "subprocess")
LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
GONE = "all variables but context are lost"
SECONDS = 1
TOO_LONG = f"more than {SECONDS} seconds"


async def echo(prompt: str) -> str:
    return f"you said {prompt}"


async def attack(code: str, seconds: float = PATIENCE_S) -> tuple[str, str]:
    """What the code prints, and what the next code does."""
    then = "print(len(context))"
    try:
        async with Sandbox("12345", echo, seconds=seconds, modules=ATTACKING) as box:
            ran = await box.run(code)
            assert len(ran.output) <= OUTPUT_CHARS
            box._seconds = PATIENCE_S
            return ran.output, (await box.run(then)).output
    except UsageError as error:
        pytest.skip(error.message)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print(open('/etc/passwd').read())", "FileNotFoundError"),
        ("open('/proc/self/environ')", "FileNotFoundError"),
        ("open('/dev/null', 'w')", "FileNotFoundError"),
        ("import os\nprint(os.listdir('/'), sorted(os.environ)[-2:])", "[] ['PYTHON"),
        ("import os\nos.chdir('../../..')\nprint(os.getcwd(), os.listdir('.'))", "/ []"),
        ("import socket\nsocket.create_connection(('192.0.2.1', 80))", "unreachable"),
        ("import os\nwhile True: os.fork()", "BlockingIOError"),
        ("import threading\nthreading.Thread(target=print).start()", "Error"),
        ("import subprocess\nsubprocess.run(['/bin/sh'])", "BlockingIOError"),
        ("with open('big', 'wb') as f:\n  while True: f.write(bytes(2**20))", "OSError"),
        ("for n in range(99): open(f'{n}', 'wb').write(bytes(2**20))", "No space left"),
        ("for n in range(9999): open(f'{n}', 'w').close()", "No space left"),
        ("files = [open(f'{n}', 'w') for n in range(99)]", "Too many open files"),
        ("x = bytearray(8 * 2**30)", "MemoryError"),
        ("def f(): return f()\nf()", "RecursionError"),
        ("raise SystemExit", "SystemExit"),
        ("while True: pass", TOO_LONG),
        ("while True:\n  try:\n    while True: pass\n  except BaseException: pass", TOO_LONG),
        ("import time\ntime.sleep(99)", TOO_LONG),
        ("while True: llm_query('again')", TOO_LONG),
        ("import os\nos._exit(0)", GONE),
        ("import os\nos.closerange(0, 99)", GONE),
        ("import os\nos.write(4, b'{}\\n')", GONE),
        ("import os\nwhile True: os.write(4, bytes(2**20))", GONE),
        ("import os\nos.write(4, b'{\"output\": 3}\\n')", GONE),
        (LIBC + "libc.memset(0, 0, 9)", GONE),
        (LIBC + "print(libc.unshare(0x10000000), libc.unshare(0x20000))", "-1 -1"),
        (LIBC + "print(libc.mount(b't', b'/', b'tmpfs', 0, None))", "-1"),
        (LIBC + "print(libc.shmget(0, 2**20, 0o1600))", "-1"),
        ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "Error"),
    ],
)  # fmt: skip
async def test_an_attack_ends_with_a_text_and_the_next_code_runs(code: str, said: str) -> None:
    output, after = await attack(code, SECONDS if said == TOO_LONG else PATIENCE_S)
    assert said in output
    assert after == "5\n"


async def test_it_reaches_no_server_and_no_process_of_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}))"
        assert "unreachable" in (await attack(code))[0]
    here = os.getpid()
    kill = f"import os\nos.kill(os.getppid(), 9)\nos.kill({here if here > 1 else 99999}, 9)"
    assert "ProcessLookupError" in (await attack(kill))[0]
    every = "import os\nos.killpg(0, 9)\nos.kill(-1, 9)"
    assert "ProcessLookupError" in (await attack(every))[0]


async def test_it_writes_nothing_outside(tmp_path: Path) -> None:
    output, _ = await attack(f"open({str(tmp_path / 'x')!r}, 'w').write('x')")
    assert "FileNotFoundError" in output
    assert not any(tmp_path.iterdir())  # noqa: ASYNC240


async def test_a_gigabyte_is_counted_and_not_kept() -> None:
    code = "line = 'x' * 10**6\nfor _ in range(1000): print(line, end='')"
    try:
        async with Sandbox("", echo) as box:
            ran = await box.run(code)
    except UsageError as error:
        pytest.skip(error.message)
    assert (len(ran.output), ran.more) == (OUTPUT_CHARS, 10**9 - OUTPUT_CHARS)


async def test_nothing_is_left_of_it() -> None:
    try:
        async with Sandbox("", echo) as box:
            folder = box._folder.name
            assert len(find_processes(folder)) == 2
    except UsageError as error:
        pytest.skip(error.message)
    assert not Path(folder).exists()  # noqa: ASYNC240
    wait_until(lambda: not find_processes(folder))


RUNNING = """
import asyncio
from mgl.baselines.sandbox import Sandbox
async def main():
    async with Sandbox("", str) as box:
        print(box._folder.name, flush=True)
        await box.run("while True: pass")
asyncio.run(main())
"""


async def test_it_ends_with_the_process_that_runs_it() -> None:
    await attack("")  # skips where there is no sandbox
    pipe = asyncio.subprocess.PIPE
    runner = await asyncio.create_subprocess_exec(sys.executable, "-c", RUNNING, stdout=pipe)
    assert runner.stdout is not None
    folder = (await runner.stdout.readline()).decode().strip()
    assert len(find_processes(folder)) == 2
    runner.kill()
    await runner.communicate()
    wait_until(lambda: not find_processes(folder))
    Path(folder).rmdir()  # noqa: ASYNC240


def find_processes(folder: str) -> list[psutil.Process]:
    every = list(psutil.process_iter(["cmdline"]))
    return [each for each in every if folder in " ".join(each.info["cmdline"] or ())]


async def test_variables_last_and_the_same_code_prints_the_same() -> None:
    code = "import random\nx = random.random()\nprint(x, list({'a', 'b', 'c'}), object())"
    printed = set()
    for _ in range(2):
        async with Sandbox("12345", echo, unsafe=True) as box:
            ran = await box.run(code)
            printed.add(ran.output)
            assert ran.names == ("random", "x")
            assert (await box.run("y = context + str(x)[0]")).names == ("random", "x", "y")
            assert (await box.run("print(llm_query(y))")).output == "you said 123450\n"
            assert (await box.run("FINAL_VAR('y')")).final == "123450"
            lost = await box.run("FINAL_VAR('z')")
            assert lost.final is None
            assert "there is no variable 'z'" in lost.output
            assert "'?'" in (await box.run("print([llm_query('\\ud800')[-1]])")).output
    assert len(printed) == 1


async def test_a_system_without_namespaces_refuses_unless_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there"
    there.write_text("read")
    async with Sandbox("", echo, unsafe=True) as box:
        assert (await box.run(f"print(open({str(there)!r}).read())")).output == "read\n"
    script = tmp_path / "refusing.py"
    script.write_text('print(\'{"refused": "unshare: Operation not permitted"}\')')
    monkeypatch.setattr(sandbox, "_SCRIPT", script)
    with pytest.raises(UsageError, match=r"not permitted.*--set unsafe=true"):
        async with Sandbox("", echo):
            pass
