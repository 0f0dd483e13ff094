"""Judge prompts of the benchmarks' own scripts, put beside the benchmark's files by the user.

A script is parsed, never run: of LongMemEval's ``evaluate_qa.py`` the texts that are called
``template``, by the question types of their branch (``abstention`` is that of the last), of Mem0's
``llm_judge.py`` the text ``ACCURACY_PROMPT``, of LoCoMo-Plus's ``prompt.py`` the template
``Cognitive``, where the cue is the gold. Placeholders are written alike afterwards: ``{question}``,
``{gold}`` and ``{answer}``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mgl.benchmarks.files import DataFile, open_file
from mgl.errors import InputError

ABSTENTION: Final = "abstention"
MEM0: Final = "llm_judge.py"
LOCOMO_PLUS: Final = "prompt.py"


def find_judge_prompts(folder: Path, name: str) -> tuple[dict[str, str], list[DataFile]]:
    """Find the prompts of the script ``name`` in a folder, by question type (``""`` if there is one
    for all), with the file; nothing if it is not there. InputError if it holds none."""
    if not (folder / name).is_file():
        return {}, []
    file = open_file(folder / name)
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise InputError(f"{file.path} is not Python: {error}", hint="fetch it again") from error
    find = _FINDERS.get(name, _of_longmemeval)
    prompts = dict(find(tree))
    if not prompts:
        raise InputError(
            f"{file.path} holds no judge prompt that is known",
            hint="fetch the benchmark's own file",
        )
    return prompts, [file]


def _of_mem0(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for text in _texts(tree.body, "ACCURACY_PROMPT"):
        named = text.replace("{gold_answer}", "{gold}").replace("{generated_answer}", "{answer}")
        yield "", named


def _of_locomo_plus(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                named = isinstance(key, ast.Constant) and key.value == "Cognitive"
                if named and isinstance(value, ast.Constant):
                    text = str(value.value).replace("{evidence}", "{gold}")
                    text = text.replace("{pred}", "{answer}")
                    yield "", text.replace("{{", "{").replace("}}", "}")


def _of_longmemeval(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for branch in ast.walk(tree):
        if isinstance(branch, ast.If):
            types = [
                node.value
                for node in ast.walk(branch.test)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
            ]
            for text in _texts(branch.body, "template"):
                yield from ((name, _number(text)) for name in types)
            for text in _texts(branch.orelse, "template"):
                yield ABSTENTION, _number(text)


def _texts(body: list[ast.stmt], name: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id == name:
                yield str(node.value.value)


def _number(text: str) -> str:
    for placeholder in ("{question}", "{gold}", "{answer}"):
        text = text.replace("{}", placeholder, 1)
    return text


_FINDERS: Final = {MEM0: _of_mem0, LOCOMO_PLUS: _of_locomo_plus}
