#!/usr/bin/env python3
"""Fuzz a reader of files: no input may crash it, or take more than 5 s of the processor a MB.

    scripts/bench/fuzz_readers.py html --minutes 10 --seed 7
    scripts/bench/fuzz_readers.py chat --found crash-0a1b

Needs atheris (``pip install atheris``), which follows which code an input reaches. Readers: txt,
md, html, epub, pdf and chat (chat logs, LoCoMo's files, ChatGPT's exports). The samples that it
starts from are made here. A reader may raise MglError and nothing else; what it returns has to be
text that UTF-8 can hold, with sections inside it. An input that fails is left in the folder of
--findings, and ``--found`` tries it again. Memory is bounded at 2 GB.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

SECONDS_A_MB: Final = 5.0
LONGEST: Final = 1 << 17
MEMORY_MB: Final = 2048
READERS: Final = ("txt", "md", "html", "epub", "pdf", "chat")

PAGE: Final = (
    b"<html><head><title>Trip</title></head><body><h1>One</h1><p>Ann &amp; Bo <b>met</b>."
    b"<pre> x\ty</pre><table><tr><td>a<td>b</table><ruby>x<rt>y</ruby><!-- c -->"
    b"<script>z</script></body>"
)
SHOWN: Final = b"BT /F 12 Tf 72 700 Td (Ann met Bo.) Tj ET"
OBJECTS: Final = (
    b"<</Type/Catalog/Pages 2 0 R/Outlines 6 0 R>>",
    b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
    b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
    b"<</Length %d>>stream\n%s\nendstream" % (len(SHOWN), SHOWN),
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    b"<</First 7 0 R/Last 7 0 R/Count 1>>",
    b"<</Title(One)/Parent 6 0 R/Dest[3 0 R/Fit]>>",
)


def make_pdf() -> bytes:
    """A page of one line, with an outline."""
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(OBJECTS, 1):
        places.append(len(data))
        data += b"%d 0 obj%s endobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(OBJECTS) + 1
    data += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    start = data.rindex(b"xref")
    return data + b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (size, start)


def make_epub(page: bytes = PAGE) -> bytes:
    """A book of two pages, with a table of contents."""
    root = '<rootfiles><rootfile full-path="o.opf"/></rootfiles>'
    items = "".join(
        f'<item id="{name}" href="{name}" media-type="application/xhtml+xml" {more}/>'
        for name, more in (("a", ""), ("b", ""), ("n", 'properties="nav"'))
    )
    members = {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": f"<container>{root}</container>".encode(),
        "o.opf": f"<package><metadata><title>T</title></metadata><manifest>{items}</manifest>"
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'.encode(),
        "a": page,
        "b": page,
        "n": b'<nav><ol><li><a href="a">One</a></li><li><a href="b#x">Two</a></li></ol></nav>',
    }
    return pack(members)


def pack(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in members.items():
            book.writestr(name, content)
    return data.getvalue()


def make_samples(reader: str) -> list[bytes]:
    turn = {"id": "1", "speaker": "Ann", "text": "Hi.", "time": "2024-05-01T10:00:00Z"}
    line = json.dumps(turn).encode()
    said = {"dia_id": "D1:1", "speaker": "Ann", "text": "Hi."}
    talk = {"session_1": [said], "session_1_date_time": "1:56 pm on 8 May, 2023"}
    content = {"content_type": "text", "parts": ["Hi."]}
    message = {"id": "m", "author": {"role": "user"}, "content": content, "create_time": 1.5}
    node: dict[str, Any] = {"id": "a", "message": message, "parent": None, "children": []}
    export = [{"title": "Trip", "mapping": {"a": node}, "current_node": "a"}]
    return {
        "txt": [
            b"CHAPTER I. ONE\n\nAnn met Bo.\n",
            "Größe\n".encode("utf-16"),
            b"caf\xe9 \x93x\x94",
        ],
        "md": [b"# One\n\n- a\n  * b\n\n```\n# no\n```\nTwo\n===\n> q [l](u)\n"],
        "html": [PAGE, b'<?xml version="1.0" encoding="iso-8859-1"?><p>caf\xe9'],
        "epub": [make_epub()],
        "pdf": [make_pdf()],
        "chat": [
            line + b"\n" + line,
            json.dumps([{"sample_id": "s", "conversation": talk}]).encode(),
            json.dumps(export).encode(),
        ],
    }[reader]


def read(reader: str, data: bytes) -> None:
    """Read an input, and check what comes of it."""
    from mgl.errors import MglError
    from mgl.text.conversations import parse_conversations
    from mgl.text.reading import parse_document

    start = time.process_time()
    try:
        if reader == "chat":
            for talk in parse_conversations(data, Path("log.json")):
                ids = [turn.id for turn in talk.turns]
                assert len(ids) == len(set(ids))
                talk.transcript.text.encode()
        else:
            document = parse_document(data, Path(f"file.{reader}"))
            document.text.encode()
            ends = [(each.start, each.end) for each in document.sections]
            assert all(0 <= one <= other <= len(document.text) for one, other in ends)
    except MglError:
        pass
    took = time.process_time() - start
    most = SECONDS_A_MB * (1 + len(data) / 1e6)
    assert took <= most, f"{len(data)} bytes took {took:.1f} s of the processor"


def mutate_book(mutate: Callable[[bytes, int], bytes], data: bytes, most: int, seed: int) -> bytes:
    """Change what one file of a book holds; what is no book is changed as it is."""
    chance = random.Random(seed)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            members = {name: book.read(name) for name in book.namelist()}
        name = chance.choice([*members])
    except Exception:
        return mutate(data, most)
    if chance.random() < 0.2:
        return mutate(data, most)
    members[name] = mutate(members[name], most)
    return pack(members)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 31))
    parser.add_argument("--findings", type=Path, default=Path())
    parser.add_argument("--found", type=Path, help="an input that failed")
    options = parser.parse_args()
    reader: str = options.reader
    if options.found is not None:
        read(reader, options.found.read_bytes())
        return 0
    import atheris

    with atheris.instrument_imports(include=["mgl.text", "pypdf", "markdown_it"]):
        from mgl.text import conversations, reading  # noqa: F401
    folder = tempfile.mkdtemp()
    for number, sample in enumerate(make_samples(reader)):
        Path(folder, f"{number}").write_bytes(sample)
    print(f"{reader}, seed {options.seed}", flush=True)
    settings = {
        "max_total_time": int(options.minutes * 60),
        "seed": options.seed,
        "max_len": LONGEST,
        "rss_limit_mb": MEMORY_MB,
        "timeout": 600,  # by the clock: a hang that no exception ends
        "artifact_prefix": f"{options.findings}/{reader}-",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    more: dict[str, Any] = {}
    if reader == "epub":
        more["custom_mutator"] = lambda data, most, seed: mutate_book(
            atheris.Mutate, data, most, seed
        )
    told = [f"-{name}={value}" for name, value in settings.items()]
    atheris.Setup([sys.argv[0], *told, folder], lambda data: read(reader, data), **more)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
