"""Choose the library that a vLLM server compiles constraints with, by measuring them.

    choose_backend(python, weights, home, note=print)          # "guidance", "xgrammar", "outlines"

vLLM has one library for a whole server. Each compiles the schemas that memories ask for, with the
model's own tokenizer, in the server's own Python; the one that compiles all of them within
``LIMIT_S`` and is fastest in sum is taken. The result is kept in the home folder for each version
of vLLM and each tokenizer.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, create_model

from mgl.errors import ResourceError
from mgl.llm.constraints import index_set, max_chars, one_of, several
from mgl.llm.schemas import json_schema, plain
from mgl.models.files import compute_sha256
from mgl.serving.machine import ServerEnvironment

Costs = Mapping[str, Mapping[str, float | None]]
"""Seconds by library and schema; None where it was not compiled in time."""

LIMIT_S: Final = 5.0
"""Seconds for one schema: what vLLM gives a regular expression, before it answers with an error."""

USUAL: Final = "guidance"
"""The library where nothing was measured."""

_SCRIPT: Final = Path(__file__).parent / "compiling.py"
_KEPT: Final = "serving-backends.json"
_IDS: Final = 100  # ids, sentences or indices, as a memory of some size has


def make_schemas() -> dict[str, dict[str, Any]]:
    """Make the kinds of schemas that memories ask for, over 100 ids or indices."""
    claim = Annotated[str, max_chars(160)]
    ids = [f"node_{number}" for number in range(_IDS)]
    merge = _reply(points=index_set(_IDS, least=2), description=claim)
    category = _reply(name=Annotated[str, max_chars(40)], indexes=index_set(_IDS, least=1))
    kinds = {
        "boundaries": _reply(boundaries=index_set(_IDS)),
        "one of the ids": _reply(id=one_of(ids), claim=claim),
        "merges": _reply(merges=several(merge, 8)),
        "categories": _reply(categories=several(category, 20)),
    }
    return {name: dict(plain(json_schema(kind))) for name, kind in kinds.items()}


def _reply(**fields: Any) -> type[BaseModel]:
    given: Any = {name: (kind, ...) for name, kind in fields.items()}
    made: type[BaseModel] = create_model("reply", **given)
    return made


def measure_backends(
    python: Path, tokenizer: Path, schemas: Mapping[str, Any], *, limit: float = LIMIT_S
) -> Costs:
    """Compile schemas with each library of a Python; ResourceError if it cannot be run."""
    command = [str(python), "-P", str(_SCRIPT), str(tokenizer), str(limit)]
    done = subprocess.run(
        command, input=json.dumps(schemas), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ResourceError(
            f"the libraries of {python} could not be measured: {lines[-1]}",
            hint="set structured_outputs to guidance in the serving profile",
        )
    costs: Costs = json.loads(done.stdout)
    return costs


def find_fastest(costs: Costs) -> str:
    """Find the library that compiled every schema in the least time; ``USUAL`` if none did."""
    sums = {
        backend: sum(each for each in own.values() if each is not None)
        for backend, own in costs.items()
        if own and None not in own.values()
    }
    return min(sums, key=lambda backend: sums[backend], default=USUAL)


def choose_backend(
    environment: ServerEnvironment, weights: Path, home: Path, *, note: Callable[[str], None]
) -> str:
    """Choose the library for a model folder, measured once for a version and a tokenizer.

    A model without a ``tokenizer.json`` gets ``USUAL``. Raises ResourceError as
    ``measure_backends``.
    """
    tokenizer, kept = weights / "tokenizer.json", home / _KEPT
    if not tokenizer.is_file():
        return USUAL
    key = f"{environment.version} {compute_sha256(tokenizer)}"
    known: dict[str, Any] = json.loads(kept.read_text("utf-8")) if kept.is_file() else {}
    if key not in known:
        note("measuring how fast each library compiles constraints, once for this model")
        known[key] = measure_backends(environment.python, tokenizer, make_schemas())
        home.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    chosen = find_fastest(known[key])
    note(f"constraints are compiled by {chosen}: {_describe(known[key])}")
    return chosen


def _describe(costs: Costs) -> str:
    parts = []
    for backend, own in costs.items():
        slow = sum(seconds is None for seconds in own.values())
        total = sum(seconds for seconds in own.values() if seconds is not None)
        late = f", {slow} of {len(own)} not in {LIMIT_S:g} s" if slow else ""
        parts.append(f"{backend} {total:.2f} s{late}")
    return "; ".join(parts)
