"""Which row of a printed table a method of ours is.

    >>> rows = Rows(load_suites().values())                         # doctest: +SKIP
    >>> [rows.same(method, cell) for cell in paper.cells("table4")]        # doctest: +SKIP
    [False, False, True]

A paper's suite says by what settings each of its rows is made. A method is the row whose settings
it has, of all that the paper varies; in what the paper leaves as it is (a preset, an embedder) it
may differ. A row that no suite makes is that of our memory of that name as it is by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mgl import registry
from mgl.errors import UsageError
from mgl.evaluation.papers.references import Cell
from mgl.evaluation.papers.suites import Method as Made
from mgl.evaluation.papers.suites import Suite
from mgl.evaluation.runs.manifest import Method
from mgl.memories.base import MemoryKind
from mgl.memories.options import configured

__all__ = ["Rows"]

_MODELS = ("embedder", "reranker")
"""What an entry may vary that is no setting of a method."""


class Rows:
    """The rows that some suites make, by paper, table and name."""

    def __init__(self, suites: Iterable[Suite]) -> None:
        self._made: dict[tuple[str, str, str, str | None], list[Made]] = {}
        self._varied: dict[tuple[str, str], set[str]] = {}
        self._usual: dict[tuple[str, str | None], Mapping[str, Any]] = {}
        for suite in suites:
            for entry in suite.entries:
                runs = suite.made_by(entry).runs
                for run in runs if suite.made_by(entry).varies not in _MODELS else ():
                    for one in run.methods:
                        if one.row is not None:
                            key = (suite.name, entry.id, one.row, run.benchmark)
                            self._made.setdefault(key, []).append(one)
                        self._varied.setdefault((suite.name, one.memory), set()).update(
                            one.settings
                        )

    def same(self, method: Method, cell: Cell) -> bool:
        """Whether a printed number is of the row that the method makes."""
        usual = self._default(method.memory, method.config.get("preset"))
        varied = self._varied.get((cell.paper, method.memory), set())
        own = {name: method.config.get(name, usual.get(name)) for name in varied}
        made = [
            one
            for one in self._made.get((cell.paper, cell.table, cell.method, cell.benchmark), ())
            if not one.setting or dict(one.setting) == dict(cell.setting)
        ]
        if not made:
            return cell.memory == method.memory and own == {name: usual.get(name) for name in own}
        return any(
            one.memory == method.memory
            and own == {name: one.settings.get(name, usual.get(name)) for name in varied}
            for one in made
        )

    def _default(self, memory: str, preset: str | None) -> Mapping[str, Any]:
        """What a memory is configured by where nothing is set; empty where it is not installed."""
        key = memory, preset
        if key not in self._usual:
            try:
                kind: MemoryKind = registry.load("memory", memory)
            except UsageError:
                self._usual[key] = {}
            else:
                config = configured(memory, kind, {"preset": preset}, lambda: "paper")
                self._usual[key] = config.model_dump(mode="json")
        return self._usual[key]
