"""Code that attacks the process it runs in, and what is left of it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from mgl.baselines import sandbox, sandboxed
from mgl.baselines.sandbox import MEMORY_BYTES, MODULES, OUTPUT_CHARS, Sandbox
from mgl.errors import UsageError
from tests.patience import PATIENCE_S, wait_until

ATTACKING = (*MODULES, "ctypes", "encodings.idna", "os", "socket", "subprocess")
LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
GONE = "all variables but context are lost"
SECONDS = 0.3
TOO_LONG = f"more than {SECONDS} seconds"


async def echo(prompt: str) -> str:
    return f"you said {prompt}"


async def attack(code: str, seconds: float = PATIENCE_S) -> tuple[str, str]:
    """What the code prints, and what the next code does."""
    async with open_sandbox(modules=ATTACKING, seconds=seconds) as box:
        ran = await box.run(code)
        assert len(ran.output) <= OUTPUT_CHARS
        box._seconds = PATIENCE_S
        return ran.output, (await box.run("print(len(context))")).output


@asynccontextmanager
async def open_sandbox(text: str = "12345", **options: Any) -> AsyncIterator[Sandbox]:
    """A sandbox; skips where the system has no namespaces, and nowhere else."""
    if not has_namespaces():
        pytest.skip("this system gives no namespaces")
    async with Sandbox(text, echo, **options) as box:
        yield box


@cache
def has_namespaces() -> bool:
    spaces = sandboxed.CLONE_NEWNET | (sandboxed.CLONE_NEWUSER if os.getuid() else 0)
    code = f"import ctypes\nexit(ctypes.CDLL(None).unshare({spaces}))"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def has_filter() -> None:
    """Skips where the kernel cannot filter system calls."""
    kind = ctypes.c_uint32(0x7FFF0000)  # SECCOMP_GET_ACTION_AVAIL asks for SECCOMP_RET_ALLOW
    number = {"x86_64": 317}.get(os.uname().machine, 277)
    if ctypes.CDLL(None).syscall(number, 2, 0, ctypes.byref(kind)) != 0:
        pytest.skip("this kernel has no seccomp")


@pytest.fixture
def no_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without seccomp."""
    script = Path(sandboxed.__file__).read_text()
    there, without = (f"PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, {n}, 38" for n in (22, 9999))
    assert there in script
    (tmp_path / "sandboxed.py").write_text(script.replace(there, without))
    monkeypatch.setattr(sandbox, "_SCRIPT", tmp_path / "sandboxed.py")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print(open('/etc/passwd').read())", "FileNotFoundError"),
        ("open('/proc/self/environ')", "FileNotFoundError"),
        ("open('/dev/null', 'w')", "FileNotFoundError"),
        ("import os\nprint(os.listdir('/'), sorted(os.environ)[-3:])", "[] ['PYTHON"),
        ("import os\nos.chdir('../../..')\nprint(os.getcwd(), os.listdir('.'))", "/ []"),
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
        ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "Error"),
    ],
)  # fmt: skip
async def test_an_attack_ends_with_a_text_and_the_next_code_runs(code: str, said: str) -> None:
    output, after = await attack(code, SECONDS if said == TOO_LONG else PATIENCE_S)
    assert said in output
    assert after == "5\n"


CALLS = [
    ("import socket\nsocket.create_connection(('192.0.2.1', 80))", "unreachable"),
    ("import os\nwhile True: os.fork()", "BlockingIOError"),
    ("import threading\nthreading.Thread(target=print).start()", "Error"),
    ("import subprocess\nsubprocess.run(['/bin/sh'])", "BlockingIOError"),
    (LIBC + "print(libc.unshare(0x10000000), libc.unshare(0x20000))", "-1 -1"),
    (LIBC + "print(libc.mount(b't', b'/', b'tmpfs', 0, None))", "-1"),
    (LIBC + "print(libc.shmget(0, 2**20, 0o1600))", "-1"),
    (LIBC + "print(libc.semget(0, 32000, 0o600), libc.msgget(0, 0o600))", "-1 -1"),
]
REFUSED = "Operation not permitted"


@pytest.mark.usefixtures("no_filter")
@pytest.mark.parametrize(("code", "said"), CALLS)
async def test_a_kernel_without_filter_confines_as_well(code: str, said: str) -> None:
    output, after = await attack(code)
    assert said in output
    assert after == "5\n"


@pytest.mark.usefixtures("has_filter")
async def test_the_filter_refuses_with_an_error() -> None:
    async with open_sandbox(modules=ATTACKING, seconds=PATIENCE_S) as box:
        for code, _ in CALLS:
            tried = f"try:\n{textwrap.indent(code, '  ')}\nexcept RuntimeError: print(-1)\n"
            output = (await box.run(tried)).output
            assert REFUSED in output or output.split()[0] == "-1", code
            assert (await box.run("print(len(context))")).output == "5\n", code


@pytest.mark.usefixtures("has_filter")
async def test_every_other_system_call_is_refused() -> None:
    _, own = sandboxed.MACHINES[os.uname().machine]
    rules = (*sandboxed.CALLS.values(), sandboxed.FCNTL, sandboxed.MMAP, sandboxed.MUNMAP)
    known = {numbers[own] for numbers in rules}
    known |= {335, 336}  # uretprobe and uprobe, which x86_64 filters for nobody and nobody can use
    others = [number for number in range(700) if number not in known]
    others += [0x40000000 + number for number in range(700)]  # x32's, on x86_64
    code = f"""{LIBC}
made = []
for number in {others}:
    if libc.syscall(number, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
        made.append(number)
print(made)
"""
    assert await attack(code) == ("[]\n", "5\n")


TAKING = {
    "semaphores": "take(lambda: call('semget', 0, 32000, 0o600), 32000 * 64)",
    "messages": """
message = ctypes.create_string_buffer(8 + 8192)
message[0] = 1
def fill():
    queue = call('msgget', 0, 0o600)
    call('msgsnd', queue, message, 8192, 0o4000)
    call('msgsnd', queue, message, 8000, 0o4000)
take(fill, 16384)""",
    "files without a name": """
def fill():
    os.posix_fallocate(os.memfd_create('x'), 0, 16 << 20)
take(fill, 16 << 20)""",
    "shared memory": "take(lambda: call('shmget', 0, 16 << 20, 0o1600), 16 << 20)",
    "pipes": """
import fcntl
def fill():
    fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)
take(fill, 1 << 20)""",
    "locks": """
import fcntl, struct
file, places = open('x', 'w+b'), itertools.count(0, 2)
def fill():
    for _ in range(100): fcntl.fcntl(file, 6, struct.pack('hhqqi', 0, 0, next(places), 1, 0))
take(fill, 100 * 200, most=5 << 20)""",
    "timers": "take(lambda: call('timer_create', 1, None, ctypes.byref(ctypes.c_void_p())), 300)",
    "keys": """
names = itertools.count()
take(lambda: call('syscall', 248, b'user', b'%d' % next(names), bytes(900), 900, -1), 900)""",
    "rings": """
given = (ctypes.c_uint32 * 30)()
take(lambda: call('syscall', 425, 4096, given), 1 << 20)""",
    "sockets": "import socket\ntake(lambda: os.dup(socket.socketpair()[0].fileno()), 1 << 17)",
    "queues": "take(lambda: call('mq_open', b'/x', 0o102, 0o600, None), 80_000)",
    "watches": "take(lambda: call('inotify_init'), 4096)",
    "files of a disk": "take(lambda: os.mkfifo(f'{random.random()}'), 4096)",
}
TAKE = f"""{LIBC}
import itertools, random
def call(name, *given):
    found = getattr(libc, name)(*given)
    if found == -1: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
def take(fill, size, most=1200 << 20):
    taken = 0
    try:
        while taken < most:
            fill()
            taken += size
    except OSError as error: print(error)
    print('taken', taken)
"""


@pytest.mark.usefixtures("has_filter")
@pytest.mark.parametrize("kind", TAKING)
async def test_the_kernels_memory_is_not_for_the_taking(kind: str) -> None:
    """Without a filter: sets of semaphores of 1.2 GB, and as many more as are asked for."""
    async with open_sandbox(modules=(*ATTACKING, "fcntl", "struct"), seconds=PATIENCE_S) as box:
        output = (await box.run(TAKE + TAKING[kind])).output
    assert output.split()[-2:] == ["taken", "0"], output
    assert REFUSED in output


MAP = f"""{LIBC}
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mremap.restype = ctypes.c_void_p
libc.mremap.argtypes = [*[ctypes.c_size_t] * 3, ctypes.c_int, ctypes.c_size_t]
libc.sbrk.restype, libc.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_long]
def map(size, place=None, flags=0x22):
    found = libc.mmap(place, size, 3, flags, -1, 0)
    if found == 2**64 - 1: raise MemoryError
    ctypes.memset(found, 1, 1)
    return found
"""
SPREADING = {
    "pages far from each other": """
for n in range(40_000): map(4096, 0x100000000000 + (n << 30))""",
    "shared pages far from each other": """
for n in range(40_000): map(4096, 0x100000000000 + (n << 30), 0x21)""",
    "what is left of large pieces": """
for n in range(40_000):
    found = map(512 << 20)
    libc.munmap(found + 4096, (512 << 20) - 4096)""",
    "what is left of small pieces": """
for n in range(60_000):
    found = map(65536)
    libc.munmap(found + 4096, 61440)""",
    "what is left of the heap": """
for n in range(200):
    found = libc.sbrk(512 << 20)
    if found == 2**64 - 1: raise MemoryError
    ctypes.memset(found, 1, 1)
    found = (found + 8191) & ~4095
    for start in range(found, found + (511 << 20), 65536): libc.munmap(start, 65536)""",
    "pieces that are moved": """
for n in range(40_000):
    found = map(4096)
    moved = libc.mremap(found, 4096, 4096, 3, 0x100000000000 + (n << 30))
    if moved == 2**64 - 1: raise MemoryError""",
    "all that a process may have": """
kept = []
while True: kept.append(bytearray(1 << 20))""",
}


@pytest.mark.usefixtures("has_filter")
@pytest.mark.parametrize("kind", SPREADING)
async def test_tables_of_pages_stay_small(kind: str) -> None:
    code = f"{MAP}try:{textwrap.indent(SPREADING[kind], '  ')}\nexcept MemoryError: print('full')"
    async with open_sandbox(modules=(*ATTACKING, "mmap"), seconds=PATIENCE_S) as box:
        ran = await box.run(code)
        tables, own = await asyncio.to_thread(measure_memory, box._folder.name)
        assert GONE not in ran.output
        assert (await box.run("kept = None\nprint(len(context))")).output == "5\n"
    assert tables < 64 << 20
    assert own + tables <= MEMORY_BYTES + (64 << 20)


@pytest.mark.usefixtures("has_filter")
async def test_the_stack_cannot_be_taken_apart() -> None:
    """It grows by itself: each piece that is left of it needs a table."""
    code = f"""{MAP}
near = ctypes.c_void_p.in_dll(libc, 'program_invocation_name').value & ~4095
for start in range(near - (4 << 20), near + 4096, 4096):
    if libc.munmap(start, 4096) != -1: print('unmapped')
print(os.strerror(ctypes.get_errno()))
"""
    assert (await attack(code))[0] == f"{REFUSED}\n"


def measure_memory(folder: str) -> tuple[int, int]:
    """Bytes of the tables of pages, and of the pages, of the process that code runs in."""
    found = [(0, 0)]
    for process in find_processes(folder):
        status = Path(f"/proc/{process.pid}/status").read_text()
        sizes = dict(re.findall(r"^(\w+):\s+(\d+) kB$", status, re.MULTILINE))
        found.append((int(sizes["VmPTE"]) << 10, int(sizes["VmRSS"]) << 10))
    return max(found)


async def test_it_says_where_the_kernel_has_no_filter(
    no_filter: None, has_filter: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del no_filter, has_filter
    async with open_sandbox() as box:
        assert box.unfiltered == "[Errno 22] prctl: Invalid argument"
    monkeypatch.undo()
    async with open_sandbox() as box:
        assert box.unfiltered is None


async def test_it_reaches_no_server_and_no_process_of_this_machine(no_filter: None) -> None:
    del no_filter
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
    async with open_sandbox("") as box:
        ran = await box.run(code)
    assert (len(ran.output), ran.more) == (OUTPUT_CHARS, 10**9 - OUTPUT_CHARS)


async def test_nothing_is_left_of_it() -> None:
    async with open_sandbox("") as box:
        folder = box._folder.name
        assert len(find_processes(folder)) == 2
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
