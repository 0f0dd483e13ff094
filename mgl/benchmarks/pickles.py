"""A pickle that is held to built-in values: texts, numbers, lists and dicts, never code.

    >>> plain_values(pickle.dumps({"rain": [1, "It rained."]}))
    {'rain': [1, 'It rained.']}

Every opcode is looked at before anything is loaded, and nothing is imported while it is.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any, Final, NoReturn

__all__ = ["NotPlain", "plain_values"]

_OPCODES: Final = frozenset(
    "PROTO FRAME STOP POP MARK EMPTY_DICT DICT SETITEM SETITEMS EMPTY_LIST LIST APPEND APPENDS "
    "EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8 "
    "NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT "
    "MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET".split()
)
_PUTS: Final = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))


class NotPlain(ValueError):
    """The bytes are no pickle, a damaged one, or one of other things than built-in values."""


def plain_values(data: bytes) -> Any:
    """The value of a pickle; NotPlain, with the place, where it is or holds anything else."""
    try:
        _check(data)
        return _ValueUnpickler(io.BytesIO(data)).load()
    except (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError,
            TypeError, ValueError, pickle.UnpicklingError) as error:  # fmt: skip
        raise NotPlain(str(error)) from error


def _check(data: bytes) -> None:
    """Every opcode is one that plain values need, and none reserves memory beyond the data."""
    for opcode, argument, position in pickletools.genops(data):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"it holds {opcode.name} at byte {position}")
        if opcode.name in _PUTS and isinstance(argument, int) and argument > len(data):
            raise pickle.UnpicklingError(f"it is damaged at byte {position}")


class _ValueUnpickler(pickle.Unpickler):
    """Loads built-in values and nothing that has to be imported."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")
