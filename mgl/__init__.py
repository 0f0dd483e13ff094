"""mgl: graph memory for long documents and long conversations, on your own machine.

    from mgl import Lab

    with Lab.open() as lab:
        result = lab.ask("scandal.txt", "Who is Irene Adler?")
    print(result.answer.text)

Importing it loads nothing: each name below is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgl.errors import MglError
    from mgl.lab import Lab, ModelChoice
    from mgl.memories.results import AskResult, BuildResult
    from mgl.types import Answer, Citation, Conversation, Document, Question, Span, Turn, Usage

__all__ = [
    "Answer",
    "AskResult",
    "BuildResult",
    "Citation",
    "Conversation",
    "Document",
    "Lab",
    "MglError",
    "ModelChoice",
    "Question",
    "Span",
    "Turn",
    "Usage",
]

DISTRIBUTION = "mindgraph-lab"
"""The name of this package on an index; there ``mgl`` is another project's."""

_HOMES = {
    "AskResult": "mgl.memories.results",
    "BuildResult": "mgl.memories.results",
    "Lab": "mgl.lab",
    "MglError": "mgl.errors",
    "ModelChoice": "mgl.lab",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mgl' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "mgl.types")), name)
