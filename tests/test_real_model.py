"""A real model end to end: it reads a page, builds a graph and answers. Structure is checked, what
a 135M model says is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mgl.lab import Lab

ROOT = Path(__file__).parent.parent
STORY = ROOT / "examples" / "a-scandal-in-bohemia.txt"
PAGE_CHARACTERS = 3_000

pytestmark = pytest.mark.weights


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.txt"
    path.write_text(STORY.read_text()[:PAGE_CHARACTERS])
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"preset": "small"},
        {"preset": "paper", "cite": "sentence", "chunk_tokens": 400, "max_operations": 6},
        {"preset": "paper", "cite": "quote", "chunk_tokens": 400, "max_operations": 6},
    ],
    ids=["small", "sentence", "quote"],
)
def test_a_page_is_read_and_answered_from(
    smollm2_weights: Path, page: Path, options: dict[str, object]
) -> None:
    question = "Who is Irene Adler to Sherlock Holmes?"
    with Lab.open("smollm2-135m", weights=smollm2_weights) as lab:
        result = lab.ask(page, question, **options)
        view = lab.view(result.memory_id)
        rows = lab.edits(result.memory_id)
        again = lab.ask(page, question, **options)
    text = page.read_text()
    assert result.answer.text
    assert rows, "nothing was proposed"
    assert not any(row.op == "reply" for row in rows), "a reply failed to parse"
    for row in rows:
        if row.outcome != "rejected" and row.span is not None:
            assert text[row.span.start : row.span.end] == row.payload["quote"]
    ids = {node.id for node in view.nodes}
    assert all({edge.source, edge.target} <= ids for edge in view.edges)
    assert {citation.node_id for citation in result.answer.citations} <= ids
    assert result.usage.total.calls > 0
    assert (again.answer, again.usage.total.calls) == (result.answer, 0)
    if options["preset"] == "small":
        assert view.nodes


def test_the_example_of_the_readme_runs(
    smollm2_weights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    code = found[1]
    assert len([line for line in code.splitlines() if line.strip()]) < 10
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("mgl.models.profiles.DEFAULT_PROFILE", "smollm2-135m")
    monkeypatch.setattr("mgl.models.weights.fetch", lambda *_, **__: smollm2_weights)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) >= 2
    start, end, _ = printed[-1].split(maxsplit=2) if printed[-1][:1].isdigit() else ("0", "1", "")
    assert int(start) < int(end)
