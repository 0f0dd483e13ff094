"""Sources as users have them: of any language, length and form, with any times."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mgl.errors import ContextOverflow, InputError
from mgl.types import Conversation, Document, Source, Turn
from tests.conformance.kinds import (
    PLACES,
    Case,
    check_answer,
    list_cases,
    open_store,
    run,
)

GERMAN = "Anna gab Björn eine Laterne. Er überquerte größere Straßen in München."
ARABIC = "أعطت آن المصباح لبو. ثم رسما الميناء. عاد بو إلى البيت."
EMOJI = "Ann 👩‍👩‍👧 gave Bo 🏮 in 🇮🇹. They 🎨 a harbour."
MARKUP = '<b>Ann</b> & "Bo": {"entities": []} [1] ``` $x_1$ <|im_end|> \\n %s {name}.'
SPACE = "\r\n\t Ann gave\u00a0Bo\u2028the lantern.\u200b \x00\x0c\n\n\n She left.\r\n"
TEXTS = {
    "one-word": "lantern" * 300,
    "without spaces": "アンはボーに灯籠を渡した。二人は港で絵を描いた。彼は長崎へ行った。" * 6,
    "languages": f"{GERMAN} {unicodedata.normalize('NFD', GERMAN)} {ARABIC} {EMOJI} " * 3,
    "marks": f"{SPACE} {MARKUP} " * 4,
}
pytestmark = pytest.mark.heavy
each_case = pytest.mark.parametrize("case", list_cases())
few = settings(max_examples=max(3, settings().max_examples // 5))
words = st.sampled_from([*"Ann gave Bo the lantern 灯籠 Straße e\u0301t 🏮 . ? ,".split(), "\n\n"])
texts = st.text(max_size=60) | st.lists(words, max_size=60).map(" ".join)
zones = st.sampled_from([None, UTC, *(timezone(timedelta(hours=hours)) for hours in (-11, 14))])
times = st.none() | st.builds(
    lambda time, zone: time.replace(tzinfo=zone),
    st.sampled_from([datetime.min, datetime.max]) | st.datetimes(),
    zones,
)
turns = st.lists(
    st.tuples(
        st.sampled_from(["", "Ann", "Bo", "user", "assistant", "日本: [1]", "\ud800"]),
        texts,
        times,
        st.sampled_from([None, "1", "2", ""]),
    ),
    max_size=8,
)


def talk_of(said: list[tuple[str, str, Any, str | None]]) -> Conversation:
    return Conversation.from_turns("odd", [Turn(f"{n}", *each) for n, each in enumerate(said)])


def say(text: str) -> list[tuple[str, str, Any, str | None]]:
    parts = [text[at : at + 90] for at in range(0, len(text), 90)]
    return [("Ann" if n % 2 else "Bo", part, None, None) for n, part in enumerate(parts)]


def can_be_refused(case: Case, source: Source) -> bool:
    """Whether a source holds what no memory takes, or what this kind does not."""
    if isinstance(source, Document):
        return not source.text.strip()
    return any(
        (turn.time is not None and turn.time.year not in range(1000, 9000))
        or (case.grows and not turn.text.strip())
        for turn in source.turns
    )


async def read(case: Case, source: Source) -> None:
    """Build and ask, with exact citations; what is refused leaves nothing in the store."""
    with open_store() as store:
        try:
            memory = case.open(store, source=source)
            answer = await run(case, memory)
        except InputError as error:
            is_right = bool(error.hint) and not store.memories() and can_be_refused(case, source)
            if not is_right:
                raise
            return
        if answer is not None:
            check_answer(case, memory, answer)
        assert memory.view().document.text == case.text_of(source)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@each_case
async def test_a_text_of_any_language_is_read_and_cited_exactly(case: Case, text: str) -> None:
    source = Document.from_text("odd.txt", text) if case.reads == "document" else talk_of(say(text))
    await read(case, source)


@each_case
async def test_a_large_source_is_read_in_the_sizes_that_users_have(case: Case) -> None:
    """A megabyte with --nightly; of a document on one line."""
    is_nightly = settings.get_current_profile_name() == "nightly"
    size = 1_000_000 if is_nightly else 20_000
    text = "".join(f"On day {n} Ann met Bo in {PLACES[n % 6]}. " for n in range(size // 30))[:size]
    source: Source = Document.from_text("large.txt", text)
    if case.reads == "conversation":
        parts = [text[at : at + 300] for at in range(0, size, 300)]
        said = [Turn(f"{n}", "Ann" if n % 2 else "Bo", part) for n, part in enumerate(parts)]
        source = Conversation.from_turns("large", said)
    with open_store() as store:
        memory = case.open(store, source=source, usual=True)
        try:
            answer = await run(case, memory)
        except ContextOverflow:
            if not is_nightly or case.name not in ("direct", "transcript"):
                raise
            return
        if answer is not None:
            check_answer(case, memory, answer)


@pytest.mark.parametrize("case", list_cases(reads="document"))
@few
@given(text=texts)
async def test_a_document_of_any_text_is_read_or_refused(case: Case, text: str) -> None:
    await read(case, Document.from_text("odd.txt", text))


@pytest.mark.parametrize("case", list_cases(reads="conversation", alike=True))
@few
@given(said=turns)
@example(said=[("", "", None, None), ("", "A lantern.", None, None)])
async def test_a_conversation_of_any_turns_and_times_is_read(case: Case, said: Any) -> None:
    await read(case, talk_of(said))
