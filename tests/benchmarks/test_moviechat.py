from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.moviechat import MOVIECHAT
from mgl.errors import InputError
from tests.benchmarks.seen import seen, talk_of


def video(name: str = "a", **fields: object) -> dict[str, Any]:
    return {
        "info": {"video_path": f"{name}.mp4", "fps": 25.0, "num_frame": 5000},
        "caption": "A man runs. It rains.",
        "global": [{"question": "When does it happen?", "answer": "Night"}],
        "breakpoint": [{"time": 3125, "question": "What falls(any type)?", "answer": "Rain"}],
        **fields,
    }


def read(folder: Path, *videos: dict[str, Any], captions: dict[str, str] | None = None) -> Dataset:
    for number, one in enumerate(videos):
        (folder / f"{number}.json").write_text(json.dumps(one))
    (folder / "captions").mkdir(exist_ok=True)
    for name, lines in (captions or {}).items():
        (folder / "captions" / f"{name}.jsonl").write_text(lines)
    return MOVIECHAT.read(folder)


def texts(dataset: Dataset, name: str = "a") -> list[str]:
    return [turn.text for turn in talk_of(dataset, name).turns]


STREAM = '{"time": 3725.5, "text": "It rains."}\n{"time": 4, "text": "A man runs."}\n'


def test_a_film_is_its_captions_by_time_with_questions_of_the_whole_and_of_moments(
    tmp_path: Path,
) -> None:
    dataset = read(tmp_path, video(), captions={"a": STREAM})
    whole, moment = dataset.items
    assert (whole.id, whole.category) == ("a/global/0", "global")
    assert whole.question.text == "When does it happen?"
    assert moment.question.text == "At 0:02:05 of the film: What falls?"
    assert (moment.category, moment.golds) == ("breakpoint", ("Rain",))
    assert set(dataset.sha256) == {"0.json", "a.jsonl"}
    assert texts(dataset) == ["[0:00:04] A man runs.", "[1:02:05] It rains."]
    assert dataset.notes == ()
    unknown = video(info={"video_path": "a.mp4", "fps": 0})
    _, moment = read(tmp_path, unknown, captions={"a": STREAM}).items
    assert moment.question.text == "What falls?", "without a frame rate no moment is named"


def test_without_a_stream_the_one_caption_is_read_and_without_any_the_film_left_out(
    tmp_path: Path,
) -> None:
    dataset = read(tmp_path, video(), video("b", caption=" "))
    assert texts(dataset) == ["A man runs.", "It rains."]
    assert {(item.source, item.category) for item in dataset.items} == {("a", "global")}
    one, other = dataset.notes
    assert "1 questions about moments left out" in one
    assert other == "b: no captions/b.jsonl: left out"


def test_the_folder_of_annotations_is_read_wherever_the_captions_lie(tmp_path: Path) -> None:
    """Pointed at ``annotations`` every film was read from its one caption, without times."""
    (tmp_path / "annotations").mkdir()
    (tmp_path / "captions").mkdir()
    (tmp_path / "annotations" / "a.json").write_text(json.dumps(video()))
    (tmp_path / "captions" / "a.jsonl").write_text(STREAM)
    whole, part = MOVIECHAT.read(tmp_path), MOVIECHAT.read(tmp_path / "annotations")
    assert whole.items == part.items
    assert texts(whole) == texts(part) == ["[0:00:04] A man runs.", "[1:02:05] It rains."]


def test_a_memory_sees_neither_answers_nor_categories(tmp_path: Path) -> None:
    one = read(tmp_path, video(**{"global": [{"question": "Who?", "answer": "Zoe"}]}))
    shown = seen(one)
    two = read(tmp_path, video(**{"global": [{"question": "Who?", "answer": None}]}))
    assert shown == seen(two)
    assert two.items[0].golds == ()
    assert "Zoe" not in repr(shown)
    assert "breakpoint" not in repr(shown)


@pytest.mark.parametrize(
    ("videos", "captions", "why"),
    [
        ([], {}, "holds no JSON file"),
        ([video(), video()], {}, "items 1 and 2 have the same id 'a'"),
        ([video(caption="")], {}, "no question of a video with captions"),
    ],
)
def test_another_file_is_refused(
    tmp_path: Path, videos: list[dict[str, Any]], captions: dict[str, str], why: str
) -> None:
    with pytest.raises(InputError, match=why) as caught:
        read(tmp_path, *videos, captions=captions)
    assert caught.value.hint


@pytest.mark.parametrize("line", ['{"time": "soon", "text": "a"}', '{"text": "a"}', '{"time": 1'])
def test_a_bad_caption_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    dataset = read(tmp_path, video(), captions={"a": f'{{"time": 1, "text": "a"}}\n{line}'})
    with pytest.raises(InputError, match=r"a\.jsonl, line 2"):
        texts(dataset)
