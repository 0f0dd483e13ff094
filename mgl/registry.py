"""Maps names to classes, which are imported when they are first loaded.

    >>> {"gam", "hgmem", "mindgraph", "mnemis"} <= set(names("memory"))
    True
    >>> load("memory", "mindgraph").__name__
    'MindGraph'

Other packages add entry points to the group ``mgl.memories`` or ``mgl.benchmarks``: the name is
what a user types, the value ``module:attribute``, a plain class or, for a benchmark, a plain object
(``mgl.benchmarks.base``). The group ``mgl.small_memories`` holds, under the same names, the kinds
that stand in for them with preset small.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from mgl.errors import UsageError

_SHIPPED: Final[Mapping[str, Mapping[str, str]]] = {
    "benchmark": {
        "beam": "mgl.benchmarks.beam:BEAM",
        "beam-500k": "mgl.benchmarks.beam:BEAM_500K",
        "beam-1m": "mgl.benchmarks.beam:BEAM_1M",
        "beam-10m": "mgl.benchmarks.beam:BEAM_10M",
        "locomo": "mgl.benchmarks.locomo:LOCOMO",
        "locomo-all": "mgl.benchmarks.locomo:LOCOMO_ALL",
        "locomo-growth": "mgl.benchmarks.locomo:LOCOMO_GROWTH",
        "locomo-plus": "mgl.benchmarks.locomo_plus:LOCOMO_PLUS",
        "longbench-v2": "mgl.benchmarks.longbench:LONGBENCH_V2",
        "longdialqa": "mgl.benchmarks.dialsim:LONGDIALQA",
        "longmemeval-m": "mgl.benchmarks.longmemeval:LONGMEMEVAL_M",
        "longmemeval-s": "mgl.benchmarks.longmemeval:LONGMEMEVAL",
        "longreason": "mgl.benchmarks.made:LONGREASON",
        "loogle": "mgl.benchmarks.loogle:LOOGLE",
        "memoryagentbench": "mgl.benchmarks.memoryagentbench:MEMORYAGENTBENCH",
        "moviechat": "mgl.benchmarks.moviechat:MOVIECHAT",
        "narrativeqa": "mgl.benchmarks.narrativeqa:NARRATIVEQA",
        "nocha": "mgl.benchmarks.nocha:NOCHA",
        "prelude": "mgl.benchmarks.prelude:PRELUDE",
        "recall-chat": "mgl.benchmarks.recall_chat:RECALL_CHAT",
        "ruler-niah-s1": "mgl.benchmarks.ruler:RULER_NIAH_S1",
        "sensemaking": "mgl.benchmarks.made:SENSEMAKING",
    },
    "memory": {
        "a-mem": "mgl.baselines.a_mem:AMem",
        "arigraph": "mgl.baselines.arigraph:AriGraph",
        "chain-of-agents": "mgl.baselines.chain_of_agents:ChainOfAgents",
        "como-rag": "mgl.baselines.como_rag:ComoRag",
        "deep-rag": "mgl.baselines.deep_rag:DeepRag",
        "direct": "mgl.baselines.direct:Direct",
        "emem": "mgl.baselines.emem:EMem",
        "gam": "mgl.memories.gam:Gam",
        "general-agentic-memory": "mgl.baselines.general_agentic_memory:GeneralAgenticMemory",
        "graph": "mgl.memories.graph:DocumentGraph",
        "graphrag": "mgl.baselines.graphrag:GraphRag",
        "hgmem": "mgl.memories.hgmem:HgMem",
        "hipporag": "mgl.baselines.hipporag:HippoRag",
        "light": "mgl.baselines.light:Light",
        "memgpt": "mgl.baselines.memgpt:MemGPT",
        "memory-bank": "mgl.baselines.memory_bank:MemoryBank",
        "memoryos": "mgl.baselines.memoryos:MemoryOS",
        "mindgraph": "mgl.memories.mindgraph:MindGraph",
        "mnemis": "mgl.memories.mnemis:Mnemis",
        "naive-rag": "mgl.baselines.naive_rag:NaiveRag",
        "nemori": "mgl.baselines.nemori:Nemori",
        "peer:graphiti": "mgl.peers.kinds:Graphiti",
        "peer:langmem": "mgl.peers.kinds:LangMem",
        "peer:lightrag": "mgl.peers.kinds:LightRag",
        "peer:mem0": "mgl.peers.kinds:Mem0",
        "peer:rlms": "mgl.peers.kinds:Rlms",
        "passages": "mgl.baselines.passages:Passages",
        "premem": "mgl.baselines.premem:PreMem",
        "read-agent": "mgl.baselines.read_agent:ReadAgent",
        "rlm": "mgl.baselines.rlm:Rlm",
        "sliding-summary": "mgl.baselines.sliding_summary:SlidingSummary",
        "transcript": "mgl.baselines.transcript:Transcript",
        "turns": "mgl.baselines.turns:Turns",
    },
    "small memory": {
        "gam": "mgl.memories.gam.small:SmallGam",
        "hgmem": "mgl.memories.hgmem.small:SmallHgMem",
        "mindgraph": "mgl.memories.mindgraph.small:SmallMindGraph",
        "mnemis": "mgl.memories.mnemis.small:SmallMnemis",
    },
}
_NOUNS: Final[Mapping[str, str]] = {
    "benchmark": "benchmark",
    "memory": "kind of memory",
    "small memory": "kind of memory",
}
_GROUPS: Final[Mapping[str, str]] = {
    "benchmark": "mgl.benchmarks",
    "memory": "mgl.memories",
    "small memory": "mgl.small_memories",
}


def names(kind: str) -> list[str]:
    """List the registered names of a kind, sorted."""
    return sorted(_targets(kind))


def has(kind: str, name: str) -> bool:
    """Whether something of a kind is registered under a name."""
    return name in _SHIPPED[kind] or name in _targets(kind)


def load(kind: str, name: str) -> Any:
    """Import what is registered under a name; UsageError with the nearest name if nothing is."""
    shipped = _SHIPPED[kind]  # wins over other packages, and needs no search for them
    targets = shipped if name in shipped else _targets(kind)
    if name not in targets:
        near = get_close_matches(name, targets, n=1)
        known = ", ".join(sorted(targets))
        raise UsageError(
            f"there is no {_NOUNS[kind]} {name!r}",
            hint=f"did you mean {near[0]!r}?"
            if near
            else f"choose one of: {known}; or install the package that had it",
        )
    module, _, attribute = targets[name].partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"the {kind} {name!r} ({targets[name]}) cannot be imported: {error}",
            hint="install what it needs, or remove the package that registers it",
        ) from error


def _targets(kind: str) -> dict[str, str]:
    path = tuple((folder, _find_change(folder)) for folder in sys.path)
    return {**_find_entries(_GROUPS[kind], path), **_SHIPPED[kind]}


@lru_cache(maxsize=len(_GROUPS))
def _find_entries(group: str, _path: tuple[tuple[str, int], ...]) -> dict[str, str]:
    """What installed packages register, read again when the search path or one of its folders
    changes."""
    return {entry.name: entry.value for entry in entry_points(group=group)}


def _find_change(folder: str) -> int:
    """The time of a folder's last change, in ns; 0 for a missing folder."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
