"""The confined side of ``mgl.baselines.sandbox``: a script that runs code it is sent.

It needs the standard library alone. It imports all that the code may import, gives up everything
else (``_confine``), and only then reads from its parent, a JSON object a line:

    {"context": "..."}         sets the variable ``context``; the reply is {"ready": true}
    {"code", "number"}         runs; the reply is {"number", "output", "more", "names", "final"}
    {"reply": "..."}           answers a {"query": "..."} that running code has sent

What holds the code are limits of the kernel, not of Python: nothing here relies on names being
hidden from it.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import json
import os
import random
import resource
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any

MOST_CHARS = 1_000_000  # of one text that is sent to the parent
CODE = "<code>"
FILES = 16  # open at once
INODES = 256
NOBODY = 65534

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
CAPABILITY_VERSION_3 = 0x20080522


class Output(io.TextIOBase):
    """Keeps the first ``most`` characters that are written, and counts the others."""

    def __init__(self, most: int) -> None:
        self.text, self.more, self._most = "", 0, most

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        kept = text[: self._most - len(self.text)]
        self.text += kept
        self.more += len(text) - len(kept)
        return len(text)


class Repl:
    """The namespace in which code runs, and the pipe to the parent."""

    def __init__(self, inward: int, outward: int, output_chars: int) -> None:
        self._inward = os.fdopen(inward, encoding="utf-8")
        self._outward = outward
        self._output_chars = output_chars
        self._final: str | None = None
        self._given: dict[str, Any] = {
            "llm_query": self._query,
            "llm_query_batched": self._query_all,
            "FINAL": self._end,
            "FINAL_VAR": self._end_with,
            "SHOW_VARS": self._names,
        }
        self._space: dict[str, Any] = {"__name__": "__main__", **self._given}

    def send(self, **message: Any) -> None:
        left = json.dumps(message).encode() + b"\n"
        while left:
            left = left[os.write(self._outward, left) :]

    def receive(self) -> dict[str, Any]:
        """The next message; ends the process where the parent is gone."""
        line = self._inward.readline()
        if not line:
            os._exit(0)
        message: dict[str, Any] = json.loads(line)
        return message

    def serve(self) -> None:
        while True:
            message = self.receive()
            if "context" in message:
                self._space["context"] = message["context"]
                self.send(ready=True)
            else:
                self._run(message["code"], message["number"])

    def _run(self, code: str, number: int) -> None:
        output, self._final = Output(self._output_chars), None
        sys.stdout = sys.stderr = output
        try:
            exec(compile(code, CODE, "exec"), self._space)
        except BaseException as error:
            _explain(error, output)
        final = None if self._final is None else _clean(self._final)
        self.send(
            number=number,
            output=_clean(output.text),
            more=output.more,
            names=self._names(),
            final=final,
        )

    def _names(self) -> list[str]:
        """The variables that the code has set, by name."""
        space = self._space
        own = [name for name in space if name not in self._given and not name.startswith("_")]
        return sorted(_clean(name) for name in own if name != "context")

    def _query(self, prompt: object) -> str:
        text = str(prompt)
        if len(text) > MOST_CHARS:
            return f"Error: the prompt has {len(text):,} characters, and {MOST_CHARS:,} may be sent"
        self.send(query=_clean(text))
        return str(self.receive()["reply"])

    def _query_all(self, prompts: list[object]) -> list[str]:
        return [self._query(prompt) for prompt in prompts]

    def _end(self, value: object) -> None:
        self._final = str(value)

    def _end_with(self, name: object) -> None:
        """End with a variable, given by its name or itself."""
        if not isinstance(name, str):
            return self._end(name)
        name = name.strip().strip("\"'")
        if name not in self._space:
            raise NameError(f"there is no variable {name!r}; there are {self._names()}")
        return self._end(self._space[name])


def _explain(error: BaseException, output: Output) -> None:
    """Write the lines of the code that an error came through, the last of them, and the error;
    no paths, which differ by machine. Only its type where memory is short."""
    try:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"line {frame.lineno}" for frame in frames if frame.filename == CODE][-3:]
        said = "".join(traceback.format_exception_only(error))
        output.write("Error in " + ", ".join(lines) + f": {said}" if lines else f"Error: {said}")
    except BaseException:
        output.write(f"Error: {type(error).__name__}\n")


def _clean(text: str) -> str:
    """A text that every reader of JSON takes, of at most MOST_CHARS."""
    return text[:MOST_CHARS].encode("utf-8", "replace").decode()


def _confine(folder: str, disk_bytes: int) -> None:
    """Leave the network, the file system and the other processes; OSError where that cannot be.

    The process forks: the caller goes on as the first process of a namespace of its own, in an
    empty folder on a small file system in memory, without rights; the other waits for its end.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def call(name: str, *given: Any) -> None:
        if getattr(libc, name)(*given) != 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{name}: {os.strerror(code)}")

    uid, gid = os.getuid(), os.getgid()
    spaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    call("unshare", spaces if uid == 0 else spaces | CLONE_NEWUSER)
    if uid != 0:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    with suppress(OSError):  # an old kernel lets only root set it
        _write("/proc/sys/kernel/shmmni", "0")
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if child := os.fork():
        os.closerange(0, FILES)
        os.waitpid(child, 0)
        os._exit(0)
    os.setsid()
    call("mount", b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    options = f"size={disk_bytes},nr_inodes={INODES},mode=755".encode()
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    call("mount", b"tmpfs", folder.encode(), b"tmpfs", flags, options)
    os.chdir(folder)
    call("syscall", _number_of_pivot_root(), b".", b".")
    call("umount2", b".", MNT_DETACH)
    # A user namespace cannot be made from within a root that is not the mount's own.
    os.mkdir("folder", 0o755)  # noqa: PTH102
    if uid == 0:
        os.chown("folder", NOBODY, NOBODY)
    os.chdir("folder")
    os.chroot(".")
    if uid == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    header, none = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    call("capset", header, none)
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _number_of_pivot_root() -> int:
    """The number of a system call that the C library has no function for."""
    numbers = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
    machine = os.uname().machine
    if machine not in numbers:
        raise OSError(f"pivot_root is not known on {machine}")
    return numbers[machine]


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)


def _limit(settings: dict[str, int]) -> None:
    """Set limits that the process cannot raise."""
    limits = {
        resource.RLIMIT_AS: settings["memory_bytes"],
        resource.RLIMIT_CPU: settings["cpu_seconds"],
        resource.RLIMIT_FSIZE: settings["disk_bytes"],
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        resource.setrlimit(kind, (most, most))


def main(settings: dict[str, Any]) -> None:
    inward, outward, null = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)
    repl = Repl(inward, outward, settings["output_chars"])
    try:
        for name in settings["modules"]:
            importlib.import_module(name)
        if settings["unsafe"]:
            os.chdir(settings["folder"])
        else:
            _confine(settings["folder"], settings["disk_bytes"])
        _limit(settings)
    except (OSError, ValueError, AttributeError, ImportError) as error:
        repl.send(refused=str(error))
        return
    random.seed(0)
    repl.serve()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
