"""BERTScore in a run: a pass of its own, with its model in the name of the score."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import ResourceError, UsageError
from mgl.evaluation.report.report import make_report, to_csv
from mgl.evaluation.report.runs import read_run
from mgl.evaluation.runs.lifecycle import Replay, verify_run
from mgl.evaluation.runs.manifest import Manifest
from mgl.evaluation.scorers.bertscore import bertscore_names, bertscores
from mgl.retrieval.matching import Matching, TokenMatcher, open_matcher
from mgl.retrieval.models import Source
from tests.evaluation.trial import SLOW, Trial, rows, write_data
from tests.retrieval import tiny

pytestmark = [
    pytest.mark.retrieval,
    pytest.mark.usefixtures("plugin"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "roberta"
    folder.mkdir()
    return tiny.roberta(folder)


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Pulls the plug at the pair of that number."""

    matches = TokenMatcher.__call__

    def after(pairs: int) -> None:
        left = [pairs]

        def counted(matcher: TokenMatcher, said: str, wanted: str) -> Matching:
            left[0] -= 1
            if left[0] < 0:
                raise ResourceError("the plug was pulled", hint="put it in")
            return matches(matcher, said, wanted)

        monkeypatch.setattr(TokenMatcher, "__call__", counted)

    return after


def test_of_several_gold_answers_the_best_counts() -> None:
    class Matcher:
        model_id = "m@1:last"

        def __call__(self, _said: str, wanted: str) -> Matching:
            return {"a": Matching(0.9, 0.1, 0.2), "b": Matching(0.3, 0.8, 0.4)}[wanted]

    match: Any = Matcher()
    names = ("bertscore_p:m@1:last", "bertscore_r:m@1:last", "bertscore_f1:m@1:last")
    assert bertscores(match, "x", ["a", "b"]) == dict(zip(names, (0.9, 0.8, 0.4), strict=True))
    assert bertscores(match, "x", []) == {}
    assert bertscore_names("m@1:last") == names


def test_scores_are_kept_under_the_name_of_their_model_verified_and_replayed(
    trial: Trial, tmp_path: Path, model: Path
) -> None:
    places = {"north": ["Asgard", SLOW, "Thule"], "none": ["Mu"]}
    trial.data = write_data(tmp_path / "tiny.json", places)
    out = trial.run(tmp_path / "run", bertscore=f"{model}:1")
    manifest = Manifest.read(out)
    match = open_matcher(f"{model}:1", tmp_path, Source())
    names = bertscore_names(match.model_id)
    assert manifest.scorers == ("exact_match", *names)
    assert manifest.arguments.bertscore == f"{model}:1"
    asgard, slow, _, mu = rows(out)
    assert asgard["scores"] == {"exact_match": 1.0, **dict.fromkeys(names, 1.0)}
    assert (slow["outcome"], slow["scores"]) == ("failed", {})
    assert (mu["outcome"], mu["scores"]) == ("unscored", {})
    report = make_report([read_run(out)], with_plots=False)
    assert names[2].replace("_", " ") in to_csv(report)

    assert verify_run(out) == verify_run(out, match) == []
    with pytest.raises(UsageError):
        verify_run(out, open_matcher(str(model), tmp_path, Source()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgl.retrieval.matching.TokenEncoder", None)
        assert trial.replay(out, 4) == Replay(4 + 2 + 4, (), ()), "a replay needs no weights"

    path, name = out / "records.jsonl", names[2]
    found = [json.loads(line) for line in path.read_text().splitlines()]
    first, second = [row for row in found if row["kind"] == "scores"]
    first["scores"][name] -= 0.01
    del second["scores"][name]
    path.write_text("".join(json.dumps(row) + "\n" for row in found))
    without = [(one.what, one.recorded, one.found) for one in verify_run(out)]
    assert without == [(name, "none", "due")], "the records alone do not tell"
    changed, due = verify_run(out, match)
    assert (changed.what, changed.recorded, changed.found) == (name, "0.99", "1.0")
    assert due.found == "due"


def test_other_weights_than_the_run_was_started_with_are_refused(
    trial: Trial, tmp_path: Path, model: Path, plug: Callable[[int], None]
) -> None:
    plug(4)
    with pytest.raises(ResourceError):
        trial.run(tmp_path / "run", bertscore=str(model))
    shutil.rmtree(model)
    model.mkdir()
    tiny.roberta(model, labels=3)
    with pytest.raises(UsageError):
        trial.resume(tmp_path / "run")


def test_a_model_that_is_not_there_is_refused_before_anything_is_asked(trial: Trial) -> None:
    with pytest.raises(UsageError):
        trial.plan(bertscore="roberta-huge")
    with pytest.raises(ResourceError):
        trial.plan(bertscore="./nowhere")
    assert trial.calls == 0
