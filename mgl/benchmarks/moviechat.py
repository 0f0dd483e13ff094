"""MovieChat-1K as text: a film told by captions, with questions about all of it and about moments.

Source: Song et al., MovieChat (CVPR 2024): a JSON file a video, {info: {video_path, fps,
num_frame}, caption, global: [{question, answer}], breakpoint: [{time, question, answer}]}, ``time``
being a frame. GAM (Appendix B.4) reads dense captions as a stream; those it made are not published.

A folder is read: the JSON files, or those in its ``annotations``, and beside either
``captions/VIDEO.jsonl`` with a caption a line, {"time": seconds, "text": …}, which the user makes.
A turn is a caption, with its time in its text (``[0:02:05] …``): a film has no calendar. Where a
video has no such file, the sentences of its own ``caption`` are the turns; they have no times, so
that what is asked about a moment is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import DataFile, gold_texts, hash_files, open_file, refuse_duplicates
from mgl.errors import InputError
from mgl.text.gathering import Gathering
from mgl.text.sentences import sentence_spans
from mgl.types import Conversation, Question, Turn

_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Info(BaseModel):
    video_path: str = Field(min_length=1)
    fps: _Seconds = 0.0


class _Asked(BaseModel):
    question: str = Field(min_length=1)
    answer: str | int | float | None = None
    time: _Seconds | None = None


class _Video(BaseModel):
    info: _Info
    caption: str = ""
    overall: list[_Asked] = Field([], alias="global")
    breakpoint: list[_Asked] = []

    @property
    def name(self) -> str:
        return Path(self.info.video_path).stem


class _Caption(BaseModel):
    time: _Seconds
    text: str


def _read(path: Path) -> Dataset:
    """Read the questions of every video; InputError if a file is not MovieChat's."""
    if (path / "annotations").is_dir():
        path = path / "annotations"
    paths = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not paths:
        raise InputError(f"{path} holds no JSON file", hint="put MovieChat-1K's annotations there")
    files = [open_file(own) for own in paths]
    hint = "take MovieChat-1K's annotations, a file a video"
    videos = [video for file in files for video in file.rows(_Video, hint=hint)]
    refuse_duplicates(path, (video.name for video in videos))
    items: list[Item] = []
    notes: list[str] = []
    sources = {}
    for video in videos:
        name, folder = video.name, paths[0].parent
        places = [place / "captions" / f"{name}.jsonl" for place in (folder, folder.parent)]
        captions = next((place for place in places if place.is_file()), None)
        if captions is not None:
            files.append(open_file(captions))
            sources[name] = partial(_from_stream, name, files[-1])
        elif video.caption.strip() and video.overall:
            left = f"{len(video.breakpoint)} questions about moments left out"
            notes.append(f"{name}: no captions/{name}.jsonl: read from its one caption, {left}")
            sources[name] = partial(_from_caption, name, video.caption)
        else:
            notes.append(f"{name}: no captions/{name}.jsonl: left out")
            continue
        items += _items(video, moments=captions is not None)
    if not items:
        raise InputError(
            f"{path} has no question of a video with captions",
            hint="put captions/VIDEO.jsonl beside the annotations",
        )
    return Dataset(tuple(items), sources, hash_files(files), tuple(notes))


def _items(video: _Video, *, moments: bool) -> Iterator[Item]:
    asked_of = (("global", video.overall), ("breakpoint", video.breakpoint if moments else []))
    for category, asked in asked_of:
        for number, one in enumerate(asked):
            text = one.question.replace("(any type)", "").strip()
            if one.time is not None and video.info.fps:
                text = f"At {_clock(one.time / video.info.fps)} of the film: {text}"
            id = f"{video.name}/{category}/{number}"
            yield Item(id, video.name, Question(text), gold_texts(one.answer), category)


def _from_stream(name: str, file: DataFile) -> Conversation:
    turns = Gathering(name)
    rows = file.rows(_Caption, hint='each line is {"time": seconds, "text": "…"}')
    for number, row in enumerate(sorted(rows, key=lambda row: row.time), start=1):
        if row.text.strip():
            said = f"[{_clock(row.time)}] {row.text.strip()}"
            turns.add(f"{name}:{number}", Turn("", "", said))
    return turns.conversation()


def _from_caption(name: str, caption: str) -> Conversation:
    turns = Gathering(name)
    for number, (start, end) in enumerate(sentence_spans(caption), start=1):
        turns.add(f"{name}:{number}", Turn("", "", caption[start:end]))
    return turns.conversation()


def _clock(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{second:02}"


MOVIECHAT: Final = FileBenchmark(
    name="moviechat",
    about=About(
        title="MovieChat-1K as captions",
        paper="Song et al., MovieChat: From Dense Token to Sparse Memory for Long Video "
        "Understanding, CVPR 2024, arXiv:2307.16449",
        where="https://huggingface.co/datasets/Enxin/MovieChat-1K-test (annotations); captions by "
        "time are to be made from the videos",
        licence="for research, not for commercial use (its repository)",
        files="*.json of MovieChat-1K and captions/VIDEO.jsonl, in one folder",
        items=None,
        folder="moviechat",
    ),
    reads="conversation",
    scorers=("f1_set_amem", "bleu1_amem"),
    judge="moviechat",
    read=_read,
)
