"""Trains a LoRA of a language model: to answer as rows do (SFT), to prefer the better of two
answers (DPO), or to answer so that a reward rises (GRPO).

    task = CausalTask("builder", base, rows, Recipe())
    adapter = make_causal(Training("mine", settings, home(), observer), task)

A prompt is tokenized as the engines send it, an answer as their grammar lays it out, with the
token that ends it; the loss is of the answer alone. A row that does not fit is dropped, never cut.
The loops are TRL's. Whatever ends a run, the same command goes on from its last checkpoint to the
same weights (on a CPU, with as many threads).
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from mgl.errors import InputError, ResourceError
from mgl.models.adapters import LORA, LORA_CONFIG, LoraAdapter, check_base
from mgl.models.files import write_whole
from mgl.models.shipped import require_space
from mgl.training.data import Example, Preference, hash_rows, split
from mgl.training.fitting import WARM_UP, Epoch, Fitted, explain_import
from mgl.training.recipes import CausalBase, Recipe, Row
from mgl.training.records import Trained, Training, keep_training
from mgl.training.rewards import TERMS, reward_term
from mgl.training.tokens import Tokens, load_causal, take_rows

CausalKind = Literal["yes-no", "builder"]

LINEAR: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The linear layers of a decoder, by their names in transformers; no server adapts its head."""

EVERY: Final = 5
"""Steps between two checkpoints."""

_STATE: Final = "state.json"
_BEST: Final = "best.safetensors"
_IGNORED: Final = -100

_REPORTED: Final = {
    **{term: f"eval_rewards/{term}/mean" for term in TERMS},
    "length": "eval_completions/mean_length",
}
"""What GRPO's loop reports of the answers to the development rows; lengths are in tokens."""


@dataclass(frozen=True, slots=True)
class CausalTask:
    """What is trained: an adapter of a kind for a base, to answer as ``rows`` do."""

    kind: CausalKind
    base: CausalBase
    rows: Sequence[Row]
    recipe: Recipe


def make_causal(training: Training, task: CausalTask) -> LoraAdapter:
    """Train an adapter for a language model and keep it in the home.

    InputError for rows that cannot be learnt from and for a loss that is no number; UsageError
    without the extra ``training``; ResourceError where the model does not load or the disk is
    full.
    """
    rows, recipe = task.rows, task.recipe
    wanted = Preference if recipe.method == "dpo" else Example
    if not rows or not all(isinstance(row, wanted) for row in rows):
        raise InputError(
            f"{recipe.method} learns from rows of the kind {wanted.__name__.lower()} alone",
            hint="make them with `mgl train data`",
        )
    if task.kind == "yes-no" and {row.completion for row in rows} != {"Yes", "No"}:  # type: ignore[union-attr]
        raise InputError(
            "a judge learns from rows that are answered by Yes and by No",
            hint="collect them with `mgl train data --corpus hotpotqa-support`",
        )

    def run(work: Path) -> Trained:
        try:
            return _CausalTraining(training, task, work).run()
        except OSError as error:
            raise ResourceError(
                f"the training in {work} cannot be written: {error.strerror or error}",
                hint="make room on that disk, then run the same command again",
            ) from error

    return keep_training(training, task.kind, rows, run, task.base)


@dataclass(slots=True)
class _Progress:
    """What is kept beside TRL's checkpoints: the loss on the development rows before the first step
    and by the step after which it was measured, GRPO's terms likewise, and seconds of the
    processor."""

    key: str
    losses: dict[int, float] = field(default_factory=dict)
    terms: dict[int, dict[str, float]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def best(self) -> int:
        """The step of the lowest loss, the first of equal ones."""
        return min(self.losses, key=lambda step: (self.losses[step], step))

    @classmethod
    def read(cls, path: Path, key: str) -> _Progress:
        """Read what an earlier run left; InputError where that had other rows or settings."""
        if not path.is_file():
            return cls(key)
        kept = json.loads(path.read_bytes())
        if kept["key"] != key:
            raise InputError(
                f"{path.parent} is of a training with other rows or settings",
                hint="remove that folder, or give the rows and settings of then",
            )
        losses = {int(step): float(loss) for step, loss in kept["losses"].items()}
        terms = {int(step): dict(each) for step, each in kept["terms"].items()}
        return cls(key, losses, terms, float(kept["seconds"]))

    def write(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self)).encode())


class _CausalTraining:
    def __init__(self, training: Training, task: CausalTask, work: Path) -> None:
        self._kind, self._base, self._work = task.kind, task.base, work
        self._observer = observer = training.observer
        self._settings, self._recipe = settings, recipe = training.settings, task.recipe
        rows, development = split(task.rows)  # type: ignore[type-var]
        self.tokenizer, model = load_causal(self._base.folder)
        most = settings.max_tokens
        self._development = take_rows(self.tokenizer, development, most, observer)
        self._rows = take_rows(self.tokenizer, rows, most, observer)
        if not self._rows or not self._development:
            raise InputError(
                f"{len(self._rows)} rows and {len(self._development)} for development are too few",
                hint="give more rows, or a higher --max-tokens",
            )
        described = {**asdict(settings), **recipe.describe(), "base": self._base.describe()}
        self._began = time.process_time()
        self._progress = _Progress.read(work / _STATE, hash_rows([*rows, *development], described))
        self._length = math.ceil(len(self._rows) / settings.batch)
        tokens = sum(len(row.prompt) + sum(map(len, row.answers)) for row in self._rows)
        observer.note(
            f"{len(self._rows):,} rows to train on ({tokens:,} tokens), "
            f"{len(self._development):,} for development; "
            f"{self._length * settings.epochs:,} steps at most"
        )
        self._trainer = self._make_trainer(model)
        weights = sum(each.nbytes for each in self._weights().values())
        require_space(work, 8 * weights)  # two checkpoints with both moments, the best, the result

    def run(self) -> Trained:
        from safetensors.torch import load_file

        before = self._judge()
        if 0 not in self._progress.losses:
            self._trainer.evaluate()
        self._trainer.model.train()
        from transformers import set_seed

        set_seed(self._settings.seed)
        found = _find_checkpoint(self._work / "checkpoints")
        self._trainer.train(resume_from_checkpoint=None if found is None else str(found))
        self._put(load_file(self._work / _BEST))
        progress = self._progress
        steps = [step for step in sorted(progress.losses) if step]
        logged = [each for each in self._trainer.state.log_history if "loss" in each]
        epochs = [
            Epoch(
                _mean([each["loss"] for each in logged if last < each["step"] <= step]),
                -progress.losses[step],
            )
            for last, step in zip([0, *steps], steps, strict=False)
        ]
        best = progress.best
        metrics = {"loss before": progress.losses[0], "loss": progress.losses[best]}
        for label, scores in ((" before", before), ("", self._judge())):
            metrics |= {f"{key}{label}": value for key, value in scores.items()}
        for label, step in ((" before", 0), ("", best)):
            metrics |= {f"{term}{label}": value for term, value in progress.terms[step].items()}
        fitted = Fitted(
            [-progress.losses[0]],
            [-progress.losses[best]],
            epochs,
            steps.index(best) if best else -1,
            progress.seconds,
        )
        files = self._write(self._work / "adapter")
        return Trained(fitted, metrics, files, recipe=self._recipe.describe())

    # What TRL's loop reports

    def watch(self, step: int, total: int) -> None:
        self._observer.progress("steps", step, total)

    def check(self, logs: Mapping[str, float]) -> None:
        """InputError where a loss is no number."""
        for key in ("loss", "eval_loss"):
            if not math.isfinite(logs.get(key, 0.0)):
                raise InputError(
                    "the loss is not a number",
                    hint="train at a lower --rate; the last checkpoint is kept",
                )

    def keep(self, step: int, loss: float, terms: dict[str, float]) -> bool:
        """Note loss and terms after a step and keep the best weights; whether to stop."""
        from safetensors.torch import save_file

        self._progress.losses[step], self._progress.terms[step] = loss, terms
        if self._progress.best == step:
            scratch = self._work / f"{_BEST}.new"
            save_file(self._weights(), scratch)
            scratch.replace(self._work / _BEST)
        self.spend()
        later = [one for one in self._progress.losses if one > self._progress.best]
        return len(later) >= self._settings.patience

    def spend(self) -> None:
        """Note the seconds since the last time."""
        now = time.process_time()
        self._progress.seconds += now - self._began
        self._began = now
        self._progress.write(self._work / _STATE)

    # Its parts

    def _make_trainer(self, model: Any) -> Any:
        try:
            from datasets import Dataset
            from peft import LoraConfig, PeftModel
            from transformers.trainer_callback import PrinterCallback
        except ImportError as error:
            raise explain_import(error) from error
        own, start = self._settings, self._recipe.start
        lora: Any = None
        if start is None:
            lora = LoraConfig(
                r=own.rank,
                lora_alpha=2 * own.rank,
                target_modules=list(LINEAR),
                task_type="CAUSAL_LM",
            )
        else:
            check_base(start, self._base.name, self._base.folder)
            start.file(LORA)
            model = PeftModel.from_pretrained(model, start.folder, is_trainable=True)
            # by which PEFT would ask the hub for the base's configuration at each checkpoint
            model.peft_config["default"].base_model_name_or_path = None
        kind, config, describe = self._choose_loop()
        train, development = (
            Dataset.from_list([describe(row) for row in rows])
            for rows in (self._rows, self._development)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # TRL's own, about its own defaults
            trainer = kind(
                model=model,
                args=config,
                train_dataset=train,
                eval_dataset=development,
                processing_class=self.tokenizer,
                peft_config=lora,
                callbacks=[_make_callback(self)],
            )
        trainer.remove_callback(PrinterCallback)
        return trainer

    def _choose_loop(self) -> tuple[Any, Any, Callable[[Tokens], dict[str, Any]]]:
        """TRL's trainer, its configuration, and what it reads of a row."""
        from mgl.retrieval.computing import choose_device

        try:
            from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
        except ImportError as error:
            raise explain_import(error) from error
        own, recipe, is_cpu = self._settings, self._recipe, choose_device() == "cpu"
        at_once, times = recipe.at_once, max(1, own.batch // recipe.at_once)
        if recipe.method == "grpo":  # TRL counts answers
            at_once, times = recipe.group, own.batch
        common: dict[str, Any] = {
            "output_dir": str(self._work / "checkpoints"),
            "per_device_train_batch_size": at_once,
            "per_device_eval_batch_size": at_once,
            "gradient_accumulation_steps": times,
            "num_train_epochs": own.epochs,
            "learning_rate": own.rate,
            "lr_scheduler_type": "linear",
            "warmup_steps": WARM_UP,
            "seed": own.seed,
            "data_seed": own.seed,
            "save_steps": EVERY,
            "save_total_limit": 2,
            "eval_strategy": "epoch",
            "logging_steps": 1,
            "logging_nan_inf_filter": False,
            "report_to": "none",
            "disable_tqdm": True,
            "use_cpu": is_cpu,
            "bf16": not is_cpu,
            "gradient_checkpointing": not is_cpu,
            "dataloader_pin_memory": not is_cpu,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            if recipe.method == "sft":
                return SFTTrainer, SFTConfig(**common, max_length=None), _describe_example
            if recipe.method == "dpo":

                class Prepared(DPOTrainer):  # type: ignore[misc]
                    def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
                        return dataset  # tokenized as served, which TRL would do its own way

                args = DPOConfig(**common, max_length=None, beta=recipe.beta)
                return Prepared, args, _describe_preference
            args = GRPOConfig(
                **common,
                num_generations=recipe.group,
                max_completion_length=max(len(row.answers[0]) for row in self._rows) * 2,
                use_vllm=recipe.vllm,
                vllm_mode="colocate",
                reward_weights=[1.0, *[0.0] * (len(TERMS) - 1)],
            )
        rewards = [reward_term(term) for term in TERMS]
        return partial(GRPOTrainer, reward_funcs=rewards), args, _describe_task

    def _weights(self) -> dict[str, Any]:
        from peft import get_peft_model_state_dict

        found = get_peft_model_state_dict(
            self._trainer.model, adapter_name="default", save_embedding_layers=False
        )
        return {name: each.detach().cpu().contiguous() for name, each in found.items()}

    def _put(self, weights: Mapping[str, Any]) -> None:
        from peft import set_peft_model_state_dict

        set_peft_model_state_dict(self._trainer.model, dict(weights), adapter_name="default")

    def _judge(self) -> dict[str, float]:
        """AUC and calibration of P(Yes) on the development rows, for a judge."""
        if self._kind != "yes-no":
            return {}
        import torch

        from mgl.training.judging import score_judge

        yes, no = (
            self.tokenizer.encode(word, add_special_tokens=False)[0] for word in ("Yes", "No")
        )
        model, chances = self._trainer.model, []
        model.eval()
        with torch.inference_mode():
            for row in self._development:
                ids = torch.tensor([row.prompt], device=model.device)
                logits = model(input_ids=ids, logits_to_keep=1).logits[0, -1, [yes, no]]
                chances.append(float(logits.float().softmax(-1)[0]))
        labels = [row.answers[0][0] == yes for row in self._development]
        return score_judge(chances, labels)

    def _write(self, folder: Path) -> list[Path]:
        """Write the LoRA as PEFT and vLLM read it, in float16: weights and configuration."""
        import torch
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        halves = {name: each.to(torch.float16) for name, each in self._weights().items()}
        save_file(halves, folder / LORA, metadata={"format": "pt"})
        config = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": self._base.repo or self._base.name,
            "r": self._trainer.model.peft_config["default"].r,
            "lora_alpha": self._trainer.model.peft_config["default"].lora_alpha,
            "target_modules": list(LINEAR),
            "bias": "none",
        }
        (folder / LORA_CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
        return [folder / LORA, folder / LORA_CONFIG]


def _describe_example(row: Tokens) -> dict[str, Any]:
    return {
        "input_ids": [*row.prompt, *row.answers[0]],
        "labels": [*[_IGNORED] * len(row.prompt), *row.answers[0]],
    }


def _describe_preference(row: Tokens) -> dict[str, Any]:
    chosen, rejected = row.answers
    return {"prompt_ids": row.prompt, "chosen_ids": chosen, "rejected_ids": rejected}


def _describe_task(row: Tokens) -> dict[str, Any]:
    """TRL tokenizes the messages by the same template as we do."""
    return {"prompt": row.messages, "gold": row.texts[0], "described": row.schema}


def _make_callback(training: _CausalTraining) -> Any:
    from transformers import TrainerCallback

    class Watch(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            training.watch(state.global_step, state.max_steps)

        def on_log(
            self, _args: Any, _state: Any, _control: Any, logs: Any = None, **_: Any
        ) -> None:
            training.check(logs or {})

        def on_save(self, *_args: Any, **_: Any) -> None:
            training.spend()

        def on_evaluate(
            self, _args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
        ) -> None:
            logged = {**state.log_history[-1], **metrics}
            reward = logged.get("eval_reward")
            loss = logged["eval_loss"] if reward is None else -reward
            terms = {term: logged[key] for term, key in _REPORTED.items() if key in logged}
            if training.keep(state.global_step, float(loss), terms):
                control.should_training_stop = True

    return Watch()


def _find_checkpoint(folder: Path) -> Path | None:
    """The last checkpoint that is whole: its state is what is written last."""
    found = []
    for state in folder.glob("checkpoint-*/trainer_state.json"):
        try:
            found.append((json.loads(state.read_bytes())["global_step"], state.parent))
        except ValueError:
            continue
    return max(found)[1] if found else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
