"""Files of every benchmark that suites name, each in its official form with at least two items.

All of it is made up here: a word or two a question, so that runs over it cost nothing.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

__all__ = ["LONGBENCH_ROW", "TOLD", "WRITERS"]

TOLD: Final = "Ann lives in Oslo. Bo met Ann in Rome. Cy lost the ring that Bo had bought there."


def _json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def _lines(path: Path, *rows: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _locomo(folder: Path, sessions: int = 1) -> None:
    said = [*enumerate(TOLD.rstrip(".").split(". "), start=1)]
    talk: dict[str, Any] = {}
    for session in range(1, sessions + 1):
        talk[f"session_{session}"] = [
            {"speaker": "Ann" if n % 2 else "Bo", "dia_id": f"D{session}:{n}", "text": f"{line}."}
            for n, line in said
        ]
        talk[f"session_{session}_date_time"] = f"1:56 pm on {7 + session} May, 2023"
    asked = [
        {"question": "Where does Ann live?", "answer": "Oslo", "category": 4, "evidence": ["D1:1"]},
        {"question": "Where did Bo go?", "answer": "Rome", "category": 1, "evidence": ["D1:2"]},
    ]
    _json(folder / "locomo10.json", [{"sample_id": "c", "conversation": talk, "qa": asked}])
    prompt = "Label {question}: {gold_answer}, {generated_answer}"
    (folder / "llm_judge.py").write_text(f"PROMPT = 'no'\nACCURACY_PROMPT = {prompt!r}")


def _longdialqa(folder: Path) -> None:
    options = ["Ann", "Bo", "Cy", "Di", "I do not remember."]
    asked = {"questions": {"default": "Who lost the ring?"}, "options": options, "answer": "Cy"}
    scenes = {
        number: {
            "date": f"September {number}, 1994",
            "script": "Joey: Cy lost the ring.\nRoss: I saw it.",
            "hard_q": {"past": [asked]},
            "easy_q": {},
        }
        for number in (1, 2)
    }
    folder.mkdir(parents=True)
    (folder / "friends_dialsim.pickle").write_bytes(pickle.dumps({"S01E01": scenes}))


def _longmemeval(folder: Path) -> None:
    def row(name: str, kind: str) -> dict[str, Any]:
        return {
            "question_id": name,
            "question_type": kind,
            "question": "Where was it sunny?",
            "question_date": "2023/05/30 (Tue) 23:40",
            "answer": "Rome",
            "answer_session_ids": ["answer_b"],
            "haystack_dates": ["2023/05/20 (Sat) 02:21"],
            "haystack_session_ids": ["answer_b"],
            "haystack_sessions": [[{"role": "user", "content": "It was sunny in Rome."}]],
        }

    _json(
        folder / "longmemeval_s.json",
        [row("one", "single-session-user"), row("two", "multi-session")],
    )
    (folder / "evaluate_qa.py").write_text(
        "if task in ['single-session-user', 'multi-session']:\n    template = 'Same? {} {} {}'\n"
    )


def _beam(folder: Path, size: str = "100K") -> None:
    said = [
        {"role": role, "id": n, "content": f"{line}. ->-> 1,{n}", "time_anchor": "March-15-2024"}
        for n, (role, line) in enumerate(zip(("user", "assistant"), TOLD.split(". "), strict=False))
    ]
    chat = folder / "chats" / size / "1"
    _json(chat / "chat.json", [{"batch_number": 1, "turns": [said]}])
    asked = {
        "information_extraction": [
            {
                "question": "Where does Ann live?",
                "answer": "Oslo",
                "source_chat_ids": [0],
                "rubric": ["LLM response should state: Oslo", "LLM response should state: 8 weeks"],
            }
        ],
        "event_ordering": [
            {
                "question": "In which order?",
                "answer": "Oslo, then Rome",
                "source_chat_ids": [[0], [1]],
                "rubric": ["Oslo", "Rome"],
            }
        ],
    }
    _json(chat / "probing_questions" / "probing_questions.json", asked)


def _locomo_plus(folder: Path) -> None:
    _locomo(folder)
    (folder / "llm_judge.py").unlink()
    row = {
        "relation_type": "causal",
        "cue_dialogue": "A: I fell.\nB: Take care.",
        "trigger_query": "A: I hired a firm.",
        "time_gap": "two weeks later",
    }
    _json(folder / "locomo_plus.json", [row, row])


def _memoryagentbench(folder: Path) -> None:
    row = {
        "context": TOLD,
        "questions": ["Where does Ann live?", "Where did Bo go?"],
        "answers": [["Oslo"], ["Rome"]],
        "metadata": {"source": "factconsolidation_sh_6k"},
    }
    _lines(folder / "Conflict_Resolution.jsonl", row)


def _moviechat(folder: Path) -> None:
    film = {
        "info": {"video_path": "a.mp4", "fps": 25.0, "num_frame": 5000},
        "caption": "A man runs. It rains.",
        "global": [{"question": "When does it happen?", "answer": "Night"}],
        "breakpoint": [{"time": 3125, "question": "What falls?", "answer": "Rain"}],
    }
    _json(folder / "a.json", film)
    _lines(folder / "captions" / "a.jsonl", {"time": 4, "text": "A man runs at night."})


def _narrativeqa(folder: Path) -> None:
    book = {"file": "rain.txt", "nqa_document_id": "d1", "nqa_title": "Rain"}
    _json(folder / "books.json", [book])
    (folder / "books").mkdir()
    (folder / "books" / "rain.txt").write_text(TOLD)
    asked = ({"question": f"{word} ?", "answers": ["Ann", "Ann ."]} for word in ("Who", "Why"))
    _lines(folder / "qaps.jsonl", *({"document_id": "d1", **one} for one in asked))


def _nocha(folder: Path) -> None:
    claims = [
        {
            "book_title": "rain",
            "claim": f"Ann lives in {place}.",
            "type": right,
            "index": 7,
            "false-claim-explanation": "It is Oslo.",
        }
        for place, right in (("Oslo", True), ("Rome", False))
    ]
    _json(folder / "data_sample.json", claims)
    (folder / "classic_books.pkl").write_bytes(pickle.dumps({"rain": TOLD}))


def _prelude(folder: Path) -> None:
    (folder / "books").mkdir(parents=True)
    (folder / "books" / "Rain.txt").write_text(TOLD)
    row = {"book_name": "Rain", "char": "Ann", "subject": "childhood", "chunks": ["…"]}
    told = (("Ann grew up in Oslo.", "consistent"), ("Ann never met Bo.", "contradict"))
    _lines(folder / "prelude.jsonl", *({**row, "content": c, "label": label} for c, label in told))


LONGBENCH_ROW: Final[Mapping[str, str]] = MappingProxyType(
    {
        "_id": "one",
        "domain": "Single-Document QA",
        "sub_domain": "Detective",
        "difficulty": "hard",
        "length": "medium",
        "question": "Who lost the ring?",
        "choice_A": "Ann",
        "choice_B": "Bo",
        "choice_C": "Cy",
        "choice_D": "Di",
        "answer": "C",
        "context": TOLD,
    }
)


def _longbench(folder: Path) -> None:
    others: tuple[dict[str, str], ...] = ({}, {"_id": "two"}, {"_id": "3", "sub_domain": "Legal"})
    _json(folder / "data.json", [{**LONGBENCH_ROW, **other} for other in others])


def _made(folder: Path, **fields: object) -> None:
    from mgl.benchmarks.base import Item
    from mgl.benchmarks.made import write_made
    from mgl.types import Document, Question

    items = [
        Item(id=f"{n}", source="a", question=Question(f"{word}?"), golds=("Ann",), **fields)  # type: ignore[arg-type]
        for n, word in enumerate(("Who lives in Oslo", "Who met Bo"))
    ]
    folder.mkdir(parents=True)
    write_made(folder, items, {"a": Document.from_text("a.txt", TOLD)})


WRITERS: Final[Mapping[str, Callable[[Path], None]]] = MappingProxyType(
    {
        "beam": _beam,
        **{f"beam-{size.lower()}": partial(_beam, size=size) for size in ("500K", "1M", "10M")},
        "locomo": _locomo,
        "locomo-growth": lambda folder: _locomo(folder, sessions=3),
        "locomo-plus": _locomo_plus,
        "longbench-v2": _longbench,
        "longdialqa": _longdialqa,
        "longmemeval-s": _longmemeval,
        "longreason": _made,
        "memoryagentbench": _memoryagentbench,
        "moviechat": _moviechat,
        "narrativeqa": _narrativeqa,
        "nocha": _nocha,
        "prelude": _prelude,
        "sensemaking": lambda folder: _made(folder, passage=TOLD),
    }
)
"""Write a folder with the files of a benchmark, by its name."""
