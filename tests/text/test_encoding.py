from __future__ import annotations

import codecs

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mgl.errors import InputError
from mgl.text.encoding import decode

FRENCH = "Il était une fois, dans une forêt éloignée, une fillette très aimée de sa mère.\n" * 3
GERMAN = "Der alte Mann saß am Fluß und hörte die Vögel. Über den Dächern wurde es spät.\n" * 3
SAMPLES = {
    "cp1252": FRENCH,
    "cp1250": "Był sobie król, który miał trzy córki. Najmłodsza żyła w wieży pod źródłem.\n" * 3,
    "cp1251": "Жил-был старик со старухой у самого синего моря. Они жили в землянке.\n" * 3,
    "koi8_r": "Жил-был старик со старухой у самого синего моря. Они жили в землянке.\n" * 3,
    "cp1253": "Μια φορά κι έναν καιρό ήταν ένας βασιλιάς που είχε τρεις κόρες.\n" * 3,
    "cp1255": "בראשית ברא אלהים את השמים ואת הארץ והארץ היתה תהו ובהו\n" * 3,
    "cp1256": "كان يا مكان في قديم الزمان ملك له ثلاث بنات جميلات\n" * 3,
    "cp932": "むかしむかし、あるところにおじいさんとおばあさんがいました。\n" * 3,
    "euc_jp": "むかしむかし、あるところにおじいさんとおばあさんがいました。\n" * 3,
    "gb18030": "从前有一个国王，他有三个女儿。最小的女儿非常美丽，住在高高的塔里。\n" * 3,
    "big5": "從前有一個國王，他有三個女兒。最小的女兒非常美麗，住在高高的塔裡。\n" * 3,
    "cp949": "옛날 옛적에 세 딸을 둔 왕이 살았습니다. 막내딸은 아주 아름다웠습니다.\n" * 3,
}


@pytest.mark.parametrize("encoding", SAMPLES)
def test_a_guess_reads_right_and_says_that_it_is_one(encoding: str) -> None:
    decoded = decode(SAMPLES[encoding].encode(encoding), "a.txt")
    assert decoded.text == SAMPLES[encoding]
    assert "encoding guessed" in decoded.notes[0]


def test_western_text_is_not_taken_for_central_european() -> None:
    assert decode(GERMAN.encode("latin-1"), "a.txt").encoding == "cp1252"


@pytest.mark.parametrize("newline", ["\n", " "])
def test_a_long_text_is_judged_by_a_part_and_read_whole(newline: str) -> None:
    text = SAMPLES["cp932"].replace("\n", newline) * 3000
    assert decode(text.encode("cp932"), "a.txt").text == text


@given(text=st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), min_size=1))
def test_a_guess_is_the_strict_decoding_of_all_bytes(text: str) -> None:
    data = text.encode("latin-1")
    try:
        decoded = decode(data, "a.txt")
    except InputError:
        assume(False)
    if "damaged" not in "".join(decoded.notes):
        bare = data.removeprefix(codecs.BOM_UTF8)
        assert decoded.text == bare.decode(decoded.encoding).removeprefix("\ufeff")


@pytest.mark.parametrize(
    "data",
    [
        b"It rained.\0 It stopped.",
        b"\0",
        "It\0 rained.".encode("utf-16"),
        "It rained.".encode("utf-16")[:-1],
        "It rained.".encode("utf-16-le"),
        bytes(range(128, 256)) * 4,
    ],
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        decode(data, "a.txt")


def test_a_few_damaged_bytes_are_replaced_and_counted() -> None:
    data = FRENCH.encode() + b"\xff\xfe" + FRENCH.encode()
    decoded = decode(data, "a.txt")
    assert decoded.text == FRENCH + "\ufffd\ufffd" + FRENCH
    assert (
        f"2 sequences replaced by U+FFFD, the first at byte {len(FRENCH.encode()):,}"
        in (decoded.notes[0])
    )
