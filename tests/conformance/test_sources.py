"""Sources as users have them: of any language, length and form, with any times."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import ContextOverflow, InputError, MglError, UsageError
from mgl.memories.turns import UNMENTIONED
from mgl.store import Store
from mgl.types import Conversation, Document, Source, Turn
from tests.conformance.kinds import (
    STORY,
    TALK,
    Case,
    CountingEngine,
    check_answer,
    list_cases,
    open_store,
    run,
)

GERMAN = "Anna gab Björn die Laterne. Er überquerte die Straße in München, größer als je zuvor."
TEXTS = {
    "one-line": "Ann gave Bo the lantern and left for Rome " * 40,
    "one-word": "lantern" * 300,
    "german": f"{GERMAN} " * 6,
    "german-nfd": unicodedata.normalize("NFD", f"{GERMAN} " * 6),
    "japanese": "アンはボーに灯籠を渡した。二人は港で絵を描いた。彼は長崎へ行った。" * 6,
    "arabic": "أعطت آن المصباح لبو. ثم رسما الميناء معا في روما. عاد بو إلى البيت. " * 6,
    "emoji": "Ann 👩‍👩‍👧 gave Bo 🏮 in 🇮🇹. They 🎨 the harbour ⛵️. " * 6,
    "markup": '<b>Ann</b> & "Bo": {"entities": []} [1] ``` $x_1$ <|im_end|> \\n %s {name}. ' * 6,
    "white-space": "\r\n\t Ann gave\u00a0Bo\u2028the lantern.\u200b \x00\x0c\n\n\n Then she left.\r\n",
}
each_case = pytest.mark.parametrize("case", list_cases())
few = settings(max_examples=settings().max_examples // 5)
words = st.sampled_from(["Ann", "gave", "Bo", "the", "lantern", "灯籠", "Straße", "e\u0301t\u0301", "🏮"])
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.lists(st.one_of(words, st.sampled_from([".", "\n\n", "?", ", "])), max_size=60).map(" ".join),
)
zones = st.sampled_from([None, UTC, timezone(timedelta(hours=-11)), timezone(timedelta(hours=14))])
times = st.none() | st.builds(
    lambda time, zone: time.replace(tzinfo=zone),
    st.sampled_from([datetime.min, datetime.max]) | st.datetimes(),
    zones,
)
turns = st.lists(
    st.builds(
        lambda speaker, text, time, session: (speaker, text, time, session),
        st.sampled_from(["", "Ann", "Bo", "user", "assistant", "日本: [1]"]),
        texts,
        times,
        st.sampled_from([None, "1", "2", ""]),
    ),
    max_size=8,
)


def talk_of(said: list[tuple[str, str, Any, str | None]]) -> Conversation:
    return Conversation.from_turns(
        "odd", [Turn(f"{n}", *each) for n, each in enumerate(said)]
    )


def say(text: str) -> list[tuple[str, str, Any, str | None]]:
    parts = [text[at : at + 90] for at in range(0, len(text), 90)]
    return [("Ann" if n % 2 else "Bo", part, None, None) for n, part in enumerate(parts)]


async def read(case: Case, source: Source) -> None:
    """Build and ask: exact citations or, of an empty source, an error or no answer."""
    with open_store() as store:
        engine = CountingEngine()
        memory = case.open(store, engine, source)
        is_empty = not (source.transcript if isinstance(source, Conversation) else source).text.strip()
        try:
            answer = await run(case, memory)
        except InputError as error:
            assert is_empty
            assert error.hint
        else:
            if answer is not None:
                check_answer(case, memory, answer)
            memory.view()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@each_case
async def test_a_text_of_any_language_is_read_and_cited_exactly(case: Case, text: str) -> None:
    source = Document.from_text("odd.txt", text) if case.reads == "document" else talk_of(say(text))
    await read(case, source)


@pytest.mark.parametrize("case", list_cases(reads="document"))
@few
@given(text=texts)
async def test_a_document_of_any_text_is_read_or_refused(case: Case, text: str) -> None:
    await read(case, Document.from_text("odd.txt", text))


@pytest.mark.parametrize("case", list_cases(reads="conversation"))
@few
@given(said=turns)
async def test_a_conversation_of_any_turns_and_times_is_read(case: Case, said: Any) -> None:
    await read(case, talk_of(said))
