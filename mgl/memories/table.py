"""Collections for states that grow by thousands of edits; an edit keeps earlier states intact."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, overload

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Prefix(Sequence[ValueT]):
    """The items that a list has now, without a copy: the list only grows, and is never changed."""

    __slots__ = ("_items", "_size")

    def __init__(self, items: list[ValueT]) -> None:
        self._items = items
        self._size = len(items)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> ValueT: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ValueT, ...]: ...
    def __getitem__(self, place: int | slice) -> ValueT | tuple[ValueT, ...]:
        if isinstance(place, slice):
            return tuple(self._items[n] for n in range(*place.indices(self._size)))
        if 0 <= place < self._size:
            return self._items[place]
        return self._items[range(self._size)[place]]

    def __iter__(self) -> Iterator[ValueT]:
        return islice(self._items, self._size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


class Table(Mapping[KeyT, ValueT]):
    """An immutable mapping in order of insertion; putting one item does not copy the rest.

    Items that were put lately lie over a mapping that is never changed, and are merged into a new
    one when there are many of them.
    """

    __slots__ = ("_base", "_late", "_size")

    MOST_LATE: Final = 256

    def __init__(self, items: Mapping[KeyT, ValueT] | None = None) -> None:
        self._base: dict[KeyT, ValueT] = dict(items or {})
        self._late: dict[KeyT, ValueT] = {}
        self._size = len(self._base)

    def put(self, key: KeyT, value: ValueT) -> Table[KeyT, ValueT]:
        """Return the table with one item more, or with another value of one that it has."""
        late = {**self._late, key: value}
        if len(late) > self.MOST_LATE:
            return Table({**self._base, **late})
        made = Table[KeyT, ValueT]()
        made._base, made._late = self._base, late
        made._size = self._size + (key not in self)
        return made

    def changes_since(self, earlier: Table[KeyT, ValueT]) -> list[KeyT] | None:
        """Return the keys whose values are not those of an earlier table.

        None if a key of the earlier one is missing.
        """
        if not earlier:
            return [*self]
        items = self.items()
        if self._base is earlier._base:
            items = self._late.items()
        elif any(key not in self for key in earlier):
            return None
        known = earlier.get
        return [k for k, value in items if (old := known(k)) is not value and old != value]

    def last(self, count: int) -> list[ValueT]:
        """Return the values of the ``count`` last keys, in order."""
        keys = chain(
            (key for key in reversed(self._late) if key not in self._base), reversed(self._base)
        )
        return [self[key] for key in islice(keys, count)][::-1]

    def __getitem__(self, key: KeyT) -> ValueT:
        return self._late[key] if key in self._late else self._base[key]

    def __contains__(self, key: object) -> bool:
        return key in self._late or key in self._base

    def __iter__(self) -> Iterator[KeyT]:
        return chain(self._base, (key for key in self._late if key not in self._base))

    def __len__(self) -> int:
        return self._size

    def values(self) -> ValuesView[ValueT]:
        return self._merge().values()

    def items(self) -> ItemsView[KeyT, ValueT]:
        return self._merge().items()

    @classmethod
    def __get_pydantic_core_schema__(
        cls, annotation: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read and write a table as its keys and its values, so that keys need not be texts."""
        from pydantic import PydanticSchemaGenerationError
        from pydantic_core import core_schema

        if not (types := get_args(annotation)):
            raise PydanticSchemaGenerationError("a table does not say what it holds")
        key, value = types
        columns = handler.generate_schema(tuple[list[key], list[value]])  # type: ignore[valid-type]
        return core_schema.no_info_after_validator_function(
            lambda found: cls(dict(zip(*found, strict=True))),
            columns,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda table: ([*table], [*table.values()]), return_schema=columns
            ),
        )

    def _merge(self) -> dict[KeyT, ValueT]:
        return {**self._base, **self._late} if self._late else self._base
