from __future__ import annotations

from pathlib import Path

import pytest

from mgl.text import read_document
from mgl.text.chapters import Heading, markdown_headings, sections, text_headings

BODY = "It rained and rained.\n" * 20


def labels(text: str) -> list[str]:
    return [section.label for section in sections(text_headings(text), len(text))]


class TestPlainText:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ("CHAPTER I.", "CHAPTER II."),
            ("Chapter 3", "Chapter 4"),
            ("Chapter One: The Rain", "Chapter Two: The Sun"),
            ("ADVENTURE I. THE RED LAMP", "ADVENTURE II. THE CELLAR"),
            ("PREFACE", "EPILOGUE"),
            ("I", "II"),
            ("I.", "II."),
            ("I. The Rain", "II. The Sun"),
        ],
    )
    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_headings(self, first: str, second: str, newline: str) -> None:
        text = f"{first}\n\n{BODY}\n{second}\n\n{BODY}".replace("\n", newline)
        assert labels(text) == [first, second]
        found = sections(text_headings(text), len(text))
        assert text[found[1].start :].startswith(second)
        assert found[0].end == found[1].start
        assert found[1].end == len(text)

    def test_a_title_on_the_line_below_belongs_to_the_heading(self) -> None:
        assert labels(f"CHAPTER I\nThe Rain\n\n{BODY}") == ["CHAPTER I The Rain"]

    def test_what_comes_before_the_first_heading_is_no_chapter(self, save) -> None:
        document = read_document(save("a.txt", f"By me.\n\nCHAPTER I\n\n{BODY}"))
        assert document.section_at(0) is None
        section = document.section_at(document.text.index("rained"))
        assert section is not None
        assert section.label == "CHAPTER I"

    @pytest.mark.parametrize(
        "text",
        [
            f"He said:\nChapter 3 is long and winding\nand dull.\n\n{BODY}",
            f"I.\n\n{BODY}",
            f"I\n\n{BODY}\n\nV\n\n{BODY}",
            f"So do I.\n\n{BODY}",
            f"Part of the way we walked.\n\n{BODY}",
            f"Chapter 3 was long,\n\n{BODY}",
            f"CHAPTER I {'x' * 200}\n\n{BODY}",
            f"THE RAIN\n\n\n{BODY}",
        ],
    )
    def test_lines_that_are_none(self, text: str) -> None:
        assert labels(text) == []

    def test_a_table_of_contents_does_not_count(self) -> None:
        listing = "CHAPTER I. The Rain\n\nCHAPTER II. The Sun\n\n"
        text = f"{listing}CHAPTER I. The Rain\n\n{BODY}\nCHAPTER II. The Sun\n\n{BODY}"
        found = sections(text_headings(text), len(text))
        assert [section.start for section in found] == [
            text.rindex("CHAPTER I."),
            text.rindex("CHAPTER II."),
        ]

    def test_numerals_inside_a_chapter_name_it_too(self) -> None:
        text = f"CHAPTER I\n\nI\n\n{BODY}\nII\n\n{BODY}\nCHAPTER II\n\n{BODY}"
        assert labels(text) == ["CHAPTER I", "CHAPTER I › I", "CHAPTER I › II", "CHAPTER II"]

    def test_parts_hold_chapters(self) -> None:
        text = "".join(
            f"{line}\n\n{BODY}\n" for line in ("PART ONE", "CHAPTER I", "PART TWO", "CHAPTER I")
        )
        assert labels(text) == [
            "PART ONE",
            "PART ONE › CHAPTER I",
            "PART TWO",
            "PART TWO › CHAPTER I",
        ]

    def test_a_numeral_with_a_title_goes_on_from_the_chapter_before(self) -> None:
        text = f"ADVENTURE I. THE LAMP\n\n{BODY}\nII. THE CELLAR\n\n{BODY}\nVII. No\n\n{BODY}"
        assert labels(text) == ["ADVENTURE I. THE LAMP", "II. THE CELLAR"]

    def test_titles_in_capitals_where_there_is_nothing_else(self) -> None:
        titles = ["THE RAIN", "THE SUN", "THE SNOW"]
        text = "THE WEATHER\n\n\n" + "".join(f"\n\n{title}\n\n{BODY}" for title in titles)
        assert labels(text) == titles

    def test_real_books(self, development_data: Path) -> None:
        books = development_data / "narrativeqa" / "books"
        dorian = read_document(books / "174_The-Picture-of-Dorian-Gray.txt")
        chapters = [s.label for s in dorian.sections if s.label.startswith("CHAPTER")]
        assert chapters == [f"CHAPTER {number}" for number in range(1, 21)]
        bleak = read_document(books / "1023_Bleak-House.txt")
        assert sum(s.label.startswith("CHAPTER") for s in bleak.sections) == 67


class TestMarkdown:
    def test_both_kinds_of_headings_outside_code(self) -> None:
        text = (
            "Weather\r\n=======\r\n\r\nIntro.\r\n\r\n## Rain ##\r\n\r\n```\r\n# no\r\n```\r\n"
            "\r\nSun\r\n---\r\n\r\n#no\r\n\r\n| a |\r\n|---|\r\n\r\n- x\r\n---\r\n\r\n# #\r\n"
        )
        assert [(h.level, h.label) for h in markdown_headings(text)] == [
            (1, "Weather"),
            (2, "Rain"),
            (2, "Sun"),
        ]

    def test_the_source_is_kept_and_the_only_title_is_not_repeated(self, save) -> None:
        text = "# Weather\n\nIntro.\n\n## Rain\n\n**Wet.**\n"
        document = read_document(save("a.md", text))
        assert document.text == text
        assert [s.label for s in document.sections] == ["Weather", "Rain"]

    def test_front_matter_is_no_heading(self) -> None:
        assert list(markdown_headings("---\ntitle: x\n---\n\nText.\n")) == []


def test_long_labels_are_cut() -> None:
    (section,) = sections([Heading(0, 1, "word " * 99)], 9)
    assert len(section.label) == 100
    assert section.label.endswith("…")
