"""What each process of ``dying`` would load anew, for the one that they are forked from."""

from __future__ import annotations

import importlib

from mgl.text.language import find_language
from tests.conformance.kinds import list_cases

list_cases()
for library in ("faiss", "scipy.cluster.hierarchy", "Stemmer"):
    importlib.import_module(library)
find_language("")
