from __future__ import annotations

import pytest

from mgl.text import read_document
from mgl.text.chapters import markdown_headings, sections, text_headings

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

    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            (["CHAPTER I\nThe Rain"], ["CHAPTER I The Rain"]),
            (
                ["PART ONE", "CHAPTER I", "PART TWO", "CHAPTER I"],
                ["PART ONE", "PART ONE › CHAPTER I", "PART TWO", "PART TWO › CHAPTER I"],
            ),
            # a numeral with a title goes on from the chapter before
            (
                ["ADVENTURE I. THE LAMP", "II. THE CELLAR", "VII. No"],
                ["ADVENTURE I. THE LAMP", "II. THE CELLAR"],
            ),
            (
                ["CHAPTER I\n\nI", "II", "CHAPTER II"],
                ["CHAPTER I", "CHAPTER I › I", "CHAPTER I › II", "CHAPTER II"],
            ),
            # titles in capitals where there is nothing else
            (["\n\nTHE RAIN", "\n\nTHE SUN", "\n\nTHE SNOW"], ["THE RAIN", "THE SUN", "THE SNOW"]),
        ],
    )
    def test_headings_of_headings(self, lines: list[str], expected: list[str]) -> None:
        assert labels("".join(f"{line}\n\n{BODY}\n" for line in lines)) == expected

    def test_a_table_of_contents_does_not_count(self) -> None:
        listing = "CHAPTER I. The Rain\n\nCHAPTER II. The Sun\n\n"
        text = f"{listing}CHAPTER I. The Rain\n\n{BODY}\nCHAPTER II. The Sun\n\n{BODY}"
        found = sections(text_headings(text), len(text))
        assert [section.start for section in found] == [
            text.rindex("CHAPTER I."),
            text.rindex("CHAPTER II."),
        ]


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

    def test_front_matter_is_no_heading(self) -> None:
        text = "---\ntitle: Rain\n---\n# Rain\n\nSun\n---\n"
        assert [h.label for h in markdown_headings(text)] == ["Rain", "Sun"]

    def test_a_heading_between_two_rules_is_no_front_matter(self) -> None:
        text = "---\n\n# Rain\n\nIt fell: a lot.\n\n---\n\n# Sun\n"
        assert [h.label for h in markdown_headings(text)] == ["Rain", "Sun"]

    def test_the_source_is_kept_and_the_only_title_is_not_repeated(self, save) -> None:
        text = "# Weather\n\nIntro.\n\n## Rain\n\n**Wet.**\n"
        document = read_document(save("a.md", text))
        assert document.text == text
        assert [s.label for s in document.sections] == ["Weather", "Rain"]
