"""The confined side of ``mgl.baselines.sandbox``: a script that runs code it is sent.

It needs the standard library alone. It imports all that the code may import, gives up everything
else (``_confine``, ``_filter``), and only then reads from its parent, a JSON object a line:

    {"context": "..."}         sets ``context``; the reply is {"ready": true, "unfiltered"}
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
import struct
import sys
import traceback
from contextlib import suppress
from typing import Any

MOST_CHARS = 1_000_000  # of one text that is sent to the parent
CODE = "<code>"
FILES = 16  # open at once
SIGNALS = 64  # waiting at once, timers included
STACK_BYTES = 8 << 20
INODES = 256
NOBODY = 65534

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
CAPABILITY_VERSION_3 = 0x20080522

SECCOMP_MODE_FILTER = 2
LOAD, EQUAL, ABOVE, NOT_BELOW, RETURN = 0x20, 0x15, 0x25, 0x35, 0x06  # instructions of a filter
CALL, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where a filter finds them; an argument has two words
Step = tuple[int, int, int, int]  # instruction, steps to skip if it holds and if not, a value
ALLOW, REFUSE = (RETURN, 0, 0, 0x7FFF0000), (RETURN, 0, 0, 0x00050001)  # with EPERM
MOST_MAPPED = 1 << 16  # bytes
READ_WRITE, PRIVATE_ANONYMOUS = 3, 0x22

# The numbers of system calls on x86_64, and on the machines that share one table.
CALLS = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62),
    "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "pwrite64": (18, 68),
    "sched_yield": (24, 124), "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93),
    "uname": (63, 160), "ftruncate": (77, 46), "getcwd": (79, 17), "chdir": (80, 49),
    "gettimeofday": (96, 169), "getrusage": (98, 165), "times": (100, 153), "getuid": (102, 174),
    "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173),
    "sigaltstack": (131, 132), "gettid": (186, 178), "futex": (202, 98), "getdents64": (217, 61),
    "restart_syscall": (219, 128), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "openat": (257, 56),
    "mkdirat": (258, 34), "newfstatat": (262, 79), "unlinkat": (263, 35), "renameat": (264, 38),
    "readlinkat": (267, 78), "faccessat": (269, 48), "renameat2": (316, 276),
    "getrandom": (318, 278), "statx": (332, 291), "faccessat2": (439, 439),
    "stat": (4, None), "lstat": (6, None), "access": (21, None), "rename": (82, None),
    "mkdir": (83, None), "rmdir": (84, None), "unlink": (87, None), "readlink": (89, None),
    "time": (201, None),
}  # fmt: skip
FCNTL, MMAP, MUNMAP, PIVOT_ROOT = (72, 25), (9, 222), (11, 215), (155, 41)
MOST_COMMAND = 3  # of fcntl: its flags, but no locks and no size of a pipe
# By machine: its name for the filter, and which of the numbers are its own.
MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}


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

    def serve(self, unfiltered: str | None) -> None:
        while True:
            message = self.receive()
            if "context" in message:
                self._space["context"] = message["context"]
                self.send(ready=True, unfiltered=unfiltered)
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
    uid, gid = os.getuid(), os.getgid()
    spaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    call("unshare", spaces if uid == 0 else spaces | CLONE_NEWUSER)
    if uid != 0:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {uid} 1")
        _write("/proc/self/gid_map", f"0 {gid} 1")
    for name, most in (("shmmni", "0"), ("msgmni", "0"), ("sem", "0 0 0 0")):
        with suppress(OSError):  # an old kernel lets only root set it
            _write(f"/proc/sys/kernel/{name}", most)
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
    call("syscall", PIVOT_ROOT[_find_machine()[1]], b".", b".")
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


def call(name: str, *given: Any) -> None:
    """Call a function of the C library; OSError where it fails."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*given) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _find_machine() -> tuple[int, int]:
    machine = os.uname().machine
    if machine not in MACHINES:
        raise OSError(f"the system calls of {machine} are not known")
    return MACHINES[machine]


def _find_stack() -> int:
    """Where the stack ends, in the address space; 0 where the system does not say."""
    with open("/proc/self/maps") as file:  # noqa: PTH123
        found = (line.split()[0] for line in file if line.endswith("[stack]\n"))
        return next((int(place.split("-")[1], 16) for place in found), 0)


def _filter(stack: int) -> None:
    """Have the kernel refuse all system calls that code does not need; OSError if it cannot.

    Process limits do not bound the kernel's own memory: semaphores, queues, files that only
    descriptors name, locks, and page tables, since each page far from the others needs its own
    table. So memory comes from ``brk``, in one piece. Python maps more for deep calls, in pieces so
    small that the kernel puts them where others were; the stack stays where it is.
    """
    if not stack:
        raise OSError("the system does not say where the stack is")
    architecture, own = _find_machine()
    rules: list[tuple[tuple[int, int | None], list[Step]]] = [
        (numbers, [ALLOW]) for numbers in CALLS.values()
    ]
    rules += [(FCNTL, [*_at_most(1, MOST_COMMAND), ALLOW])]
    size = _at_most(1, MOST_MAPPED)
    private = [*_at_most(2, READ_WRITE), *_at_most(3, PRIVATE_ANONYMOUS)]
    rules += [(MMAP, [*_at_most(0, 0), *size, *private, ALLOW])]
    rules += [(MUNMAP, [*size, *_below(0, stack - 8 * STACK_BYTES), ALLOW])]
    program = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, architecture), REFUSE, (LOAD, 0, 0, CALL)]
    for numbers, steps in rules:
        if (number := numbers[own]) is not None:
            program += [(EQUAL, 0, len(steps), number), *steps]
    code = b"".join(struct.pack("=HBBI", *step) for step in (*program, REFUSE))
    held = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("@HP", len(code) // 8, ctypes.addressof(held))
    given = ctypes.create_string_buffer(described)
    call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, given, 0, 0)


def _at_most(argument: int, most: int) -> list[Step]:
    low, high = ARGUMENTS + 8 * argument, ARGUMENTS + 8 * argument + 4
    return [
        *((LOAD, 0, 0, high), (ABOVE, 0, 1, 0), REFUSE),
        *((LOAD, 0, 0, low), (ABOVE, 0, 1, most), REFUSE),
    ]


def _below(argument: int, end: int) -> list[Step]:
    low, high = ARGUMENTS + 8 * argument, ARGUMENTS + 8 * argument + 4
    return [
        *((LOAD, 0, 0, high), (ABOVE, 0, 1, end >> 32), REFUSE, (EQUAL, 0, 3, end >> 32)),
        *((LOAD, 0, 0, low), (NOT_BELOW, 0, 1, end & 0xFFFFFFFF), REFUSE),
    ]


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
    if not settings["unsafe"]:
        limits |= {
            resource.RLIMIT_DATA: settings["memory_bytes"],
            resource.RLIMIT_STACK: STACK_BYTES,
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
            resource.RLIMIT_SIGPENDING: SIGNALS,
        }
    for kind, most in limits.items():
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))


def main(settings: dict[str, Any]) -> None:
    inward, outward, null = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)
    repl = Repl(inward, outward, settings["output_chars"])
    try:
        for name in settings["modules"]:
            importlib.import_module(name)
        stack = 0
        if settings["unsafe"]:
            os.chdir(settings["folder"])
        else:
            stack = _find_stack()
            _confine(settings["folder"], settings["disk_bytes"])
        _limit(settings)
    except (OSError, ValueError, AttributeError, ImportError) as error:
        repl.send(refused=str(error))
        return
    random.seed(0)
    unfiltered = None
    if not settings["unsafe"]:
        try:
            _filter(stack)
        except OSError as error:
            unfiltered = str(error)
    repl.serve(unfiltered)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
