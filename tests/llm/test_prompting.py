"""Texts that are cut to fit a context together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.llm.prompting import CUT, LEAST_TOKENS, available_tokens, fit_texts


def llm(context_tokens: int) -> Client:
    return Client(ScriptedEngine([], context_tokens=context_tokens), MemoryCallLog())


# Words are one token and marks are one each, so tokens are spread unevenly over characters.
TEXTS = st.lists(
    st.lists(
        st.sampled_from(["a", "word", "w" * 40, "!!!!!!!!", "  \n", "é¿", "…"]), max_size=80
    ).map(" ".join),
    max_size=12,
)


@given(texts=TEXTS, context=st.integers(0, 1500), reserve=st.integers(0, 300))
async def test_what_is_returned_fits_and_is_the_beginning_of_what_was_given(
    texts: list[str], context: int, reserve: int
) -> None:
    client = llm(context)
    there = max(LEAST_TOKENS, available_tokens(client, len(texts), reserve=reserve))
    given_tokens = await client.count_tokens(texts)
    shown = await fit_texts(client, texts, reserve=reserve)
    assert len(shown) == len(texts)
    if sum(given_tokens) <= there:
        assert shown == texts
    assert sum(await client.count_tokens(shown)) <= there
    for text, cut in zip(texts, shown, strict=True):
        assert cut in (text, "") or (cut.endswith(CUT) and text.startswith(cut.removesuffix(CUT)))


@given(texts=TEXTS, context=st.integers(500, 1500))
async def test_no_text_is_cut_that_is_shorter_than_one_that_is_not(
    texts: list[str], context: int
) -> None:
    client = llm(context)
    counts = await client.count_tokens(texts)
    shown = await fit_texts(client, texts, reserve=0)
    whole = [count for count, text, cut in zip(counts, texts, shown, strict=True) if text == cut]
    cut = [count for count, text, cut in zip(counts, texts, shown, strict=True) if text != cut]
    assert not whole or not cut or max(whole) < min(cut)


async def test_what_room_there_is_is_used() -> None:
    client = llm(2000)
    texts = ["word " * 10_000, "short one", "word " * 5_000]
    shown = await fit_texts(client, texts, reserve=100)
    assert shown[1] == "short one"
    used = sum(await client.count_tokens(shown))
    assert 0.85 < used / available_tokens(client, 3, reserve=100) <= 1
