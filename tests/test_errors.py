"""Errors as they go from one process to another, and what they say to people."""

from __future__ import annotations

import pickle
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mgl import DISTRIBUTION, errors
from mgl.errors import MglError, UsageError, describe_fault, install_hint
from mgl.memories.mindgraph import MindGraph
from mgl.memories.options import configure
from mgl.models.profiles import load_profile

KINDS = [
    one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, MglError)
]
EXTRAS = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_the_way_to_another_process(kind: type[MglError]) -> None:
    there = pickle.loads(pickle.dumps(kind("it broke", hint="mend it")))
    assert type(there) is kind
    assert (there.message, there.hint, str(there)) == ("it broke", "mend it", "it broke (mend it)")


@pytest.mark.parametrize("extra", ["retrieval", "transformers", "privacy"])
def test_the_hint_of_a_missing_extra_names_what_the_registry_has(extra: str) -> None:
    hint = install_hint(extra)
    assert DISTRIBUTION not in hint
    names = [re.split(r"[<>=]", requirement)[0] for requirement in EXTRAS[extra]]
    assert all(name.lower() in hint.lower() for name in names)  # metadata may say it in lower case


def test_the_hint_of_an_extra_that_holds_another_names_the_packages_of_both() -> None:
    hint = install_hint("training").split()
    assert {*install_hint("evaluation").split()} < {*hint}
    assert not [each for each in hint if each.startswith(DISTRIBUTION)]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rounds: Annotated[int, Field(gt=0)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rounds": 1, "colour": "red"}, "colour: is not known here"),
        ({}, "rounds: is missing"),
        ({"rounds": "many"}, "rounds: must be a whole number"),
        ({"rounds": 0}, "rounds: must be greater than 0"),
        (3, "value: must be"),
    ],
)
def test_a_fault_is_said_in_words_of_our_own(given: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(given)
    assert describe_fault(dict(caught.value.errors()[0])).startswith(said)


PYDANTIC = ("Extra inputs", "Input should", "Field required", "Value error")


def test_options_and_files_that_are_wrong_are_told_so(mgl_home: Path) -> None:
    messages = []
    for options in ({"colour": "red"}, {"chunk_tokens": "many"}, {"chunk_tokens": -1}):
        with pytest.raises(UsageError) as caught:
            configure("mindgraph", MindGraph, options)
        messages.append(caught.value.message)
    (mgl_home / "models").mkdir()
    (mgl_home / "models" / "mine.yaml").write_text("name: mine\ncolour: red\n")
    with pytest.raises(UsageError) as caught:
        load_profile("mine", home=mgl_home)
    messages.append(caught.value.message)
    assert not [text for text in messages for words in PYDANTIC if words in text]
