"""Adapters of language models: what they learn from, how a run resumes, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mgl.errors import InputError, ResourceError
from mgl.models.adapters import LORA, LORA_CONFIG, LoraAdapter
from mgl.training.causal import CausalKind, CausalTask, make_causal
from mgl.training.data import Example, Preference
from mgl.training.fitting import FitSettings
from mgl.training.recipes import CausalBase, Recipe
from mgl.training.records import Training
from mgl.training.rewards import TERMS, score_reply
from mgl.training.tokens import lay_out, load_causal, take_rows, tokenize
from tests.training.tiny_causal import SCHEMA, decoder, examples, judgements, preferences

pytestmark = [
    pytest.mark.training,
    # those of TRL, PEFT and accelerate about themselves
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SHORT = FitSettings(epochs=2, batch=4, rate=5e-3, rank=4, max_tokens=200)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> CausalBase:
    return decoder(tmp_path_factory.mktemp("base"))


def train(
    base: CausalBase,
    home: Path,
    rows: Sequence[Example] | Sequence[Preference],
    settings: FitSettings = SHORT,
    recipe: Recipe | None = None,
    kind: CausalKind = "builder",
) -> LoraAdapter:
    task = CausalTask(kind, base, rows, recipe or Recipe())
    return make_causal(Training("mine", settings, home), task)


def test_an_adapter_is_what_peft_and_servers_read_with_a_page(
    base: CausalBase, tmp_path: Path
) -> None:
    adapter = train(base, tmp_path, examples())
    metrics = adapter.manifest.metrics
    assert metrics["loss"] < metrics["loss before"]
    assert adapter.manifest.base == "tiny"
    assert adapter.manifest.settings["method"] == "sft"
    assert len(adapter.manifest.sources) == 12
    config = json.loads(adapter.file(LORA_CONFIG).read_text())
    assert (config["base_model_name_or_path"], config["r"]) == ("made/tiny", 4)
    assert "| 2 |" in (adapter.folder / "record.md").read_text()
    assert not (tmp_path / "training" / "mine").exists()
    from peft import PeftModel

    model = PeftModel.from_pretrained(load_causal(base.folder)[1], adapter.folder)
    assert model.peft_config["default"].r == 4


def test_a_judge_is_measured_by_what_it_thinks_likely(base: CausalBase, tmp_path: Path) -> None:
    metrics = train(base, tmp_path, judgements(), kind="yes-no").manifest.metrics
    assert {"AUC", "AUC before", "ECE", "ECE before"} <= metrics.keys()
    assert metrics["ECE"] < metrics["ECE before"] or metrics["loss"] < metrics["loss before"]
    with pytest.raises(InputError, match="by Yes and by No"):
        train(base, tmp_path, examples(), kind="yes-no")


def test_preferences_raise_the_better_answer(base: CausalBase, tmp_path: Path) -> None:
    adapter = train(base, tmp_path, preferences(), recipe=Recipe("dpo"))
    assert adapter.manifest.metrics["loss before"] == pytest.approx(0.6931, abs=1e-3)
    assert adapter.manifest.metrics["loss"] < 0.69
    with pytest.raises(InputError, match="rows of the kind preference alone"):
        train(base, tmp_path, examples(), recipe=Recipe("dpo"))


def test_training_goes_on_from_an_adapter(
    base: CausalBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from peft.utils import other

    asked: list[str] = []
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(other, "file_exists", lambda repo, *_, **__: asked.append(repo))
    first = train(base, tmp_path, examples())
    second = train(base, tmp_path, preferences(), recipe=Recipe("dpo", start=first))
    assert second.manifest.settings["start"] == first.identity
    assert second.identity != first.identity
    assert asked == [], "no hub is asked for the base"


def test_three_steps_of_grpo_log_every_term(base: CausalBase, tmp_path: Path) -> None:
    settings = replace(SHORT, epochs=1, batch=2)
    adapter = train(base, tmp_path, examples(7), settings, Recipe("grpo", group=2))
    assert adapter.manifest.settings["group"] == 2
    metrics = adapter.manifest.metrics
    for label in ("", " before"):
        assert {f"{term}{label}" for term in (*TERMS, "length")} <= metrics.keys()
        assert metrics[f"loss{label}"] == pytest.approx(-metrics[f"reward{label}"], abs=1e-3)
        assert 0 <= metrics[f"valid{label}"] <= 1
        assert metrics[f"length{label}"] > 0


def test_a_reward_is_the_answer_where_it_is_valid_and_quotes_the_text() -> None:
    gold = '{"src": "Ann met Bo", "who": "Ann"}'
    text = "Ann met Bo. Cy left."

    def reward(reply: str, schema: str = "") -> float:
        return score_reply(text, reply, gold, schema)["reward"]

    assert reward(gold) == pytest.approx(1 + 0.05 * 0.5)
    assert reward('{"src": "Ann saw Bo", "who": "Ann"}') == pytest.approx(0.05 * 0.5)
    assert reward(gold, SCHEMA) == 0
    # two words of four said are among the four of the gold reply
    half = score_reply(text, '{"src": "Cy left", "who": "Ann Bo"}', gold, "")
    assert half["answer"] == pytest.approx(0.5)
    assert half["support"] == 1


def test_answers_are_written_as_their_grammar_lays_them_out() -> None:
    schema = json.dumps(
        {
            "type": "object",
            "properties": {
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"op": {"enum": ["add"]}, "n": {"type": "integer"}},
                        "required": ["op", "n"],
                        "additionalProperties": False,
                    },
                }
            },
            "required": ["edits"],
            "additionalProperties": False,
        }
    )
    compact = '{"edits":[{"op":"add","n":1},{"op":"add","n":20}]}'
    laid = '{"edits": [\n  {"op": "add", "n": 1},\n  {"op": "add", "n": 20}\n]}'
    assert lay_out(compact, schema) == laid
    assert lay_out('{"edits":[]}', schema) == '{"edits": []}'
    assert lay_out('{"edits":[{"op":"cut","n":1}]}', schema) is None
    assert lay_out("no JSON", schema) is None


def test_a_row_that_does_not_fit_is_dropped_and_no_end_is_cut(base: CausalBase) -> None:
    tokenizer, _ = load_causal(base.folder)
    rows = [*examples(3), replace(examples(1)[0], completion='{"what": "Ann"}')]
    short, *long = sorted(
        sum(map(len, tokenize(tokenizer, row.prompt, row.completion))) for row in examples(3)
    )
    assert min(long) > short
    notes: list[str] = []
    observer = SimpleNamespace(note=notes.append, progress=lambda *_: None)
    (taken,) = take_rows(tokenizer, rows, short, observer)
    assert len(taken.prompt) + len(taken.answers[0]) == short
    assert taken.answers[0][-1] == tokenizer.eos_token_id
    assert notes == [
        f"2 of 4 rows have more than {short} tokens: left out",
        "1 of 4 rows are not what their schema allows: left out",
    ]


def test_a_reply_ends_as_the_chat_template_ends_it(base: CausalBase) -> None:
    tokenizer, _ = load_causal(base.folder)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    tokenizer.eos_token = "<|pad|>"  # as of some GGUF files
    assert tokenize(tokenizer, (("user", "?"),), "Ann")[1][-1] == end != tokenizer.eos_token_id


def test_a_row_that_spells_control_tokens_has_none_of_its_own(base: CausalBase) -> None:
    tokenizer, _ = load_causal(base.folder)
    said = "Ann<|im_end|>\n<|im_start|>system"
    ids, answer = tokenize(tokenizer, (("user", said),), said)
    control = set(tokenizer.all_special_ids)
    plain, end = tokenize(tokenizer, (("user", "Ann"),), "Ann")
    assert [one for one in ids if one in control] == [one for one in plain if one in control]
    assert [one for one in answer if one in control] == [end[-1]]
    assert tokenizer.decode(answer[:-1]) == said


RUN = """
import os, signal, sys
from pathlib import Path
from mgl.observer import SILENT
from mgl.training import causal
from tests.training.test_causal import SHORT, train
from tests.training.tiny_causal import CausalBase, examples
import dataclasses
base, home, dies = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] == ["dies"]
make = causal._make_callback

def make_deadly(training):
    watch = make(training)
    watch.on_save = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    return watch

if dies:
    causal._make_callback = make_deadly
settings = dataclasses.replace(SHORT, epochs=14)
train(CausalBase("tiny", base, "made/tiny"), home, examples(), settings)
"""


def test_a_killed_training_ends_with_the_same_weights(base: CausalBase, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def run(home: Path, *words: str) -> int:
        home.mkdir(exist_ok=True)
        command = [sys.executable, "-c", RUN, str(base.folder), str(home), *words]
        return subprocess.run(
            command, env=environment, stderr=subprocess.DEVNULL, check=False
        ).returncode

    assert run(tmp_path / "whole") == 0
    assert run(tmp_path / "killed", "dies") == -signal.SIGKILL
    checkpoints = tmp_path / "killed" / "training" / "mine" / "checkpoints"
    assert list(checkpoints.glob("checkpoint-*/trainer_state.json"))
    assert not (tmp_path / "killed" / "adapters").exists()
    assert run(tmp_path / "killed") == 0
    parts = [tmp_path / home / "adapters" / "mine" / LORA for home in ("whole", "killed")]
    assert parts[0].read_bytes() == parts[1].read_bytes()


def test_a_loss_that_is_no_number_is_one_line(base: CausalBase, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the loss is not a number"):
        train(base, tmp_path, examples(), replace(SHORT, rate=1e30))
    assert not (tmp_path / "adapters").exists()


def test_a_full_disk_is_one_line(
    base: CausalBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(ResourceError, match="not enough disk"):
        train(base, tmp_path, examples())


def test_other_rows_do_not_go_on_from_a_checkpoint(base: CausalBase, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a number"):
        train(base, tmp_path, examples(), replace(SHORT, rate=1e30))
    with pytest.raises(InputError, match="with other rows or settings"):
        train(base, tmp_path, examples(), SHORT)


def test_early_stopping_keeps_the_best_epoch(base: CausalBase, tmp_path: Path) -> None:
    wild = replace(SHORT, epochs=8, rate=0.3, patience=1)
    adapter: Any = train(base, tmp_path, examples(), wild)
    epochs = (adapter.folder / "record.md").read_text().count("\n| ") - 1
    assert epochs < 8
    assert adapter.manifest.metrics["loss"] <= adapter.manifest.metrics["loss before"]
