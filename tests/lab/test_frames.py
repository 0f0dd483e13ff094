"""How deep it is from a question to the engine: a reader follows each frame."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import CodeType
from typing import Any

import mgl
from mgl.lab import Lab, OwnModels
from mgl.llm.base import Completion, Request
from mgl.llm.fakes import SchemaEngine
from mgl.retrieval.fakes import WordEmbedder, WordReranker

MOST = 9  # below the command, which adds four: main, its errors, its options, itself
HOME = Path(mgl.__file__).parent  # a checkout may be called mgl as well


class Counting(SchemaEngine):
    """Keeps the code of mgl that waits for it: in the main thread, and in the tasks of its loop."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[CodeType] = []

    async def generate(self, request: Request) -> Completion:
        frame: Any = sys._current_frames()[threading.main_thread().ident or 0]
        codes = []
        while frame is not None:
            codes.append(frame.f_code)
            frame = frame.f_back
        for task in asyncio.all_tasks():
            step: Any = task.get_coro()
            while step is not None and hasattr(step, "cr_frame"):
                codes.append(step.cr_code)
                step = step.cr_await
        self.waiting = [code for code in codes if Path(code.co_filename).is_relative_to(HOME)]
        return await super().generate(request)


def test_from_a_question_to_the_engine_it_is_a_few_frames(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"speaker": "Ann", "text": "I ride."}\n')
    engine = Counting()
    with Lab.open(OwnModels(engine, embedder=WordEmbedder(), reranker=WordReranker())) as lab:
        lab.ask(log, "Who rides?")
    names = [code.co_qualname for code in engine.waiting]
    print(names)
    assert "Lab.ask" in names
    assert "Client._send" in names
    assert len(names) <= MOST, names
