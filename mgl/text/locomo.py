"""LoCoMo's conversations: ``session_1``, ``session_1_date_time``, ``session_2`` … of a sample.

    {"sample_id": "conv-26", "conversation": {"speaker_a": …, "session_1_date_time":
      "1:56 pm on 8 May, 2023", "session_1": [{"speaker": …, "dia_id": "D1:1", "text": …}, …], …}}

Source: Maharana et al., Evaluating Very Long-Term Conversational Memory of LLM Agents (ACL 2024);
the file is ``locomo10.json``. A turn has the time at which its session began: the data knows no
other. A picture's caption (``blip_caption``) belongs to the turn's text, as ``[image: …]``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from mgl.text.gathering import Gathering
from mgl.types import Conversation

__all__ = ["looks_like_locomo", "read_locomo"]

_SESSION = re.compile(r"session_(\d+)")
_BEGAN = "%I:%M %p on %d %B, %Y"


def looks_like_locomo(item: object) -> bool:
    """Whether a JSON value is a sample of LoCoMo."""
    talk = item.get("conversation") if isinstance(item, Mapping) else None
    return isinstance(talk, Mapping) and any(_SESSION.fullmatch(str(key)) for key in talk)


def read_locomo(item: Mapping[str, object], name: str) -> Conversation:
    """The conversation of one sample, its sessions in order; ``name`` where it has no id."""
    talk = item["conversation"]
    if not isinstance(talk, Mapping):
        raise ValueError("a sample's conversation is an object")
    turns = Gathering(str(item.get("sample_id") or name))
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(str(key))))
    for number in numbers:
        place = f"session {number}"
        time = _began(turns, place, talk.get(f"session_{number}_date_time"))
        said = talk[f"session_{number}"]
        if not isinstance(said, Sequence) or isinstance(said, str):
            turns.note(place, "no list of turns: left out")
            continue
        for order, fields in enumerate(said, start=1):
            _take(turns, f"{place}, turn {order}", fields, time, number, order)
    return turns.conversation()


def _take(
    turns: Gathering, place: str, fields: object, time: datetime | None, session: int, order: int
) -> None:
    if not isinstance(fields, Mapping):
        turns.note(place, "not an object: left out")
        return
    parts = [_string(fields.get("text"))]
    if caption := _string(fields.get("blip_caption")):
        parts.append(f"[image: {caption}]")
    turns.add(
        place,
        text=" ".join(part for part in parts if part),
        speaker=_string(fields.get("speaker")),
        time=time,
        session=str(session),
        id=_string(fields.get("dia_id")) or None,
        otherwise=f"D{session}:{order}",
    )


def _string(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _began(turns: Gathering, place: str, value: object) -> datetime | None:
    if value is None:
        turns.note(place, "no time: read without one")
        return None
    try:
        return datetime.strptime(str(value).strip(), _BEGAN)
    except ValueError:
        turns.note(place, f"time {str(value)[:40]!r} is not understood: read without one")
        return None
