"""Judge prompts of official scripts are parsed, never run. The scripts here are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.benchmarks.locomo import LOCOMO_ALL
from mgl.benchmarks.longmemeval import LONGMEMEVAL
from mgl.benchmarks.official import MEM0, find_judge_prompts
from mgl.errors import InputError
from tests.evaluation.small_data import WRITERS

SCRIPT = """
raise SystemExit("it must not be run")
def get_prompt(task, question, answer, response, abstention=False):
    if not abstention:
        if task in ['single-session-user', 'multi-session']:
            template = "Same? {} {} {} yes or no"
            prompt = template.format(question, answer, response)
        elif task == 'temporal-reasoning':
            template = "Off by one? {} {} {}"
        else:
            raise NotImplementedError
    else:
        template = "Abstains? {} {} {}"
    return prompt
"""


def test_each_question_type_has_the_template_of_its_branch(tmp_path: Path) -> None:
    (tmp_path / "evaluate_qa.py").write_text(SCRIPT)
    found, files = find_judge_prompts(tmp_path, "evaluate_qa.py")
    assert found == {
        "single-session-user": "Same? {question} {gold} {answer} yes or no",
        "multi-session": "Same? {question} {gold} {answer} yes or no",
        "temporal-reasoning": "Off by one? {question} {gold} {answer}",
        "abstention": "Abstains? {question} {gold} {answer}",
    }
    assert [file.path.name for file in files] == ["evaluate_qa.py"]


def test_without_the_script_there_is_none_and_another_file_is_refused(tmp_path: Path) -> None:
    assert find_judge_prompts(tmp_path, MEM0) == ({}, [])
    for text in ("x = 1", "def", SCRIPT):
        (tmp_path / MEM0).write_text(text)
        with pytest.raises(InputError):
            find_judge_prompts(tmp_path, MEM0)


def test_the_loaders_give_each_item_its_prompt_and_hash_the_script(tmp_path: Path) -> None:
    for name in ("longmemeval-s", "locomo"):
        WRITERS[name](tmp_path)
    for file, old, new in (
        ("longmemeval_s.json", '"two"', '"two_abs"'),
        ("locomo10.json", '"category": 1', '"category": 5'),
    ):
        text = (tmp_path / file).read_text()
        assert old in text
        (tmp_path / file).write_text(text.replace(old, new))
    (tmp_path / "evaluate_qa.py").write_text(SCRIPT)
    dataset = LONGMEMEVAL.read(tmp_path)
    begun = [item.judge_prompt.partition("{")[0] for item in dataset.items]
    assert begun == ["Same? ", "Abstains? "]
    assert "evaluate_qa.py" in dataset.sha256
    dataset = LOCOMO_ALL.read(tmp_path)
    prompts = [item.judge_prompt for item in dataset.items]
    assert prompts == ["Label {question}: {gold}, {answer}", ""]
    assert MEM0 in dataset.sha256
