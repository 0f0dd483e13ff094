from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from mgl.models.files import write_whole
from tests.llm.decoder import Vocabulary, read_vocabulary


@pytest.fixture(scope="session")
def vocabulary(smollm2_weights: Path, converted_weights: Path) -> Vocabulary:
    """A real one for made decoders, kept beside the conversion: reading it takes seconds."""
    kept = converted_weights / "vocabulary.json"
    if not kept.exists():
        found = read_vocabulary(smollm2_weights, {3: "<think>", 4: "</think>"})
        write_whole(kept, json.dumps(asdict(found)).encode())
    return Vocabulary(**json.loads(kept.read_text(encoding="utf-8")))
