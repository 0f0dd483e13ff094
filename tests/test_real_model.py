"""A real model of 135M parameters reads a page, builds a graph and answers.

What it says depends on the machine and its load, and may be no usable answer at all: these tests
check structure, never content.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.errors import ReplyInvalid
from mgl.lab import Lab, ModelChoice
from mgl.lab.workplace import Workplace
from mgl.llm.fakes import SchemaEngine
from mgl.memories.results import AskResult

ROOT = Path(__file__).parent.parent
STORY = ROOT / "examples" / "a-scandal-in-bohemia.txt"
PAGE_CHARACTERS = 800  # two calls or three, some seconds each


@pytest.fixture
def page(tmp_path: Path, mgl_home: Path, converted_weights: Path) -> Path:
    (mgl_home / "converted").symlink_to(converted_weights)
    path = tmp_path / "page.txt"
    path.write_text(STORY.read_text()[:PAGE_CHARACTERS])
    return path


@pytest.mark.weights
@pytest.mark.parametrize(
    "options",
    [
        {"preset": "small"},
        pytest.param({"cite": "sentence"}, marks=pytest.mark.slow),
        pytest.param({"cite": "quote"}, marks=pytest.mark.slow),
    ],
    ids=lambda options: "_".join(options.values()),
)
def test_a_page_is_read_and_answered_from(
    smollm2_weights: Path, page: Path, options: dict[str, object]
) -> None:
    if "cite" in options:
        options = {"preset": "paper", "chunk_tokens": 100, "max_operations": 3, **options}

    def ask() -> AskResult | None:
        """Give the answer, or None where the model gave none that can be used."""
        try:
            return lab.ask(page, "Who is Irene Adler to Sherlock Holmes?", **options)
        except ReplyInvalid:
            return None

    with Lab.open(ModelChoice("smollm2-135m", weights=smollm2_weights)) as lab:
        result = ask()
        [memory] = lab.memories()
        view, rows = lab.view(memory.id), lab.edits(memory.id)
        again = ask()
    text = page.read_text()
    assert {row.chunk for row in rows} <= set(range(memory.record.chunks + 1))
    for row in rows:
        if row.outcome != "rejected" and row.span is not None:
            assert text[row.span.start : row.span.end] == row.payload["quote"]
    ids = {node.id for node in view.nodes}
    assert all({edge.source, edge.target} <= ids for edge in view.edges)
    if result is not None:
        assert {citation.node_id for citation in result.answer.citations} <= ids
        assert result.usage.total.calls > 0
        assert again is not None
        assert (again.answer, again.usage.total.calls) == (result.answer, 0)


def test_the_example_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(Workplace, "engine", SchemaEngine())
    exec(compile(found[1], "README.md", "exec"), {})
    assert capsys.readouterr().out
