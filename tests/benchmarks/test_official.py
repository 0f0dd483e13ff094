"""Judge prompts of official scripts are parsed, never run. The scripts here are made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.benchmarks.locomo import LOCOMO_ALL
from mgl.benchmarks.longmemeval import LONGMEMEVAL
from mgl.benchmarks.official import MEM0, find_judge_prompts
from mgl.errors import InputError

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
MEM0_SCRIPT = (
    'PROMPT = "no"\nACCURACY_PROMPT = """Label {question}: {gold_answer}, {generated_answer}"""'
)


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
    row = {
        "question_type": "temporal-reasoning",
        "question": "When?",
        "answer": "May",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "Hi."}]],
    }
    rows = [{"question_id": id, **row} for id in ("q", "q_abs")]
    (tmp_path / "longmemeval_s.json").write_text(json.dumps(rows))
    (tmp_path / "evaluate_qa.py").write_text(SCRIPT)
    dataset = LONGMEMEVAL.read(tmp_path)
    begun = [item.judge_prompt.partition("{")[0] for item in dataset.items]
    assert begun == ["Off by one? ", "Abstains? "]
    assert "evaluate_qa.py" in dataset.sha256

    turn = {"speaker": "Ann", "dia_id": "D1:1", "text": "Hm."}
    asked = [{"question": "Who?", "answer": "Ann", "category": n, "evidence": []} for n in (1, 5)]
    talk = {"sample_id": "c", "conversation": {"session_1": [turn]}, "qa": asked}
    (tmp_path / "locomo10.json").write_text(json.dumps([talk]))
    (tmp_path / MEM0).write_text(MEM0_SCRIPT)
    dataset = LOCOMO_ALL.read(tmp_path)
    prompts = [item.judge_prompt for item in dataset.items]
    assert prompts == ["Label {question}: {gold}, {answer}", ""]
    assert MEM0 in dataset.sha256
