"""What mkdocs is told besides mkdocs.yml: README files of the repository are pages, too.

Links are written as they work in the repository; here they are turned to where the page is.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = {
    "README.md": "index.md",
    "LOG.md": "log.md",
    "serving/README.md": "serving.md",
    "models/README.md": "models.md",
    "eval/README.md": "eval.md",
}
"""Files of the repository outside docs/, and the pages that they are."""

_LINK: Final = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside docs/."""
    for path, page in PAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links between files of the repository into links between pages."""
    here = page.file.src_uri
    places = {page: path for path, page in PAGES.items()}
    folder = posixpath.dirname(places.get(here, f"docs/{here}"))

    def turn(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        found = PAGES.get(target) or target.removeprefix("docs/")
        if found == target:  # no page: it is left as it is, and reported
            return link[0]
        path = posixpath.relpath(found, posixpath.dirname(here) or ".")
        return f"{link[1]}{path}{link[3] or ''}{link[4]}"

    return _LINK.sub(turn, markdown)
