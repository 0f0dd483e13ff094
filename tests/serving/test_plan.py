"""The command that launches a server: what is in it, what never is, and that vLLM takes it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mgl.errors import UsageError
from mgl.models.profiles import load_profiles
from mgl.serving.plan import Launch, LaunchPlan, make_plan
from mgl.serving.profile import ServingProfile, load_serving_profiles
from tests.patience import PATIENCE_S

SHIPPED = load_serving_profiles()
MODELS = load_profiles()
PYTHON = Path("/opt/vllm/bin/python")


def plan(serving: str | ServingProfile, model: str | None = None, **options: Any) -> LaunchPlan:
    profile = SHIPPED[serving] if isinstance(serving, str) else serving
    chosen = MODELS[model or profile.models[0]]
    return make_plan(profile, chosen, Launch(**{"weights": None, "python": PYTHON, **options}))


def value(made: LaunchPlan, option: str) -> str | None:
    """What follows an option, or None where the command does not have it."""
    if option not in made.command:
        return None
    return made.command[made.command.index(option) + 1]


def test_the_command_names_the_model_the_weights_and_this_machine_alone(tmp_path: Path) -> None:
    made = plan("gpu-80gb", weights=tmp_path, port=9001)
    assert made.command[:3] == (str(PYTHON), "-m", "vllm.entrypoints.openai.api_server")
    assert value(made, "--model") == str(tmp_path)
    assert value(made, "--served-model-name") == made.served_name == "qwen2.5-32b-instruct"
    assert value(made, "--host") == "127.0.0.1"
    assert made.base_url == "http://127.0.0.1:9001/v1"


def test_nothing_is_sent_anywhere() -> None:
    for name in SHIPPED:
        env = plan(name).env
        assert env["HF_HUB_OFFLINE"] == env["VLLM_NO_USAGE_STATS"] == env["DO_NOT_TRACK"] == "1"
    assert plan("nodes-ray").env["RAY_USAGE_STATS_ENABLED"] == "0"


def test_the_key_is_no_part_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    monkeypatch.setenv("MGL_API_KEY", "secret")
    made = plan("cpu")
    assert "secret" not in repr(made) + made.shell()
    assert "--api-key" not in made.command


def with_backend(backend: str) -> ServingProfile:
    fields = SHIPPED["cpu"].model_dump() | {"settings": {"structured_outputs": backend}}
    return ServingProfile.model_validate(fields)


@pytest.mark.parametrize("backend", ["guidance", "xgrammar", "outlines"])
def test_white_space_is_switched_off_where_the_compiler_can(backend: str) -> None:
    fixed = "measured" if backend == "outlines" else backend
    made = plan(with_backend(fixed), compiler=backend)
    given = json.loads(value(made, "--structured-outputs-config") or "")
    compact = {} if backend == "outlines" else {"disable_any_whitespace": True}
    assert given == {"backend": backend, **compact}


def test_a_model_that_embeds_is_told_to_and_decodes_nothing() -> None:
    made = plan("cpu", "qwen3-embedding-0.6b")
    assert (value(made, "--runner"), value(made, "--convert")) == ("pooling", "embed")
    assert "--structured-outputs-config" not in made.command
    assert "--enable-lora" not in made.command


def test_the_qwen_rerankers_get_what_makes_their_scores_mean_something() -> None:
    made = plan("gpu-80gb", "qwen3-reranker-8b")
    overrides = json.loads(value(made, "--hf-overrides") or "")
    assert overrides["classifier_from_token"] == ["no", "yes"]
    template = Path(value(made, "--chat-template") or "")
    assert 'answer can only be "yes" or "no"' in template.read_text()


def test_a_longer_context_is_had_by_yarn() -> None:
    """As vLLM's page on context extension has it, for 4 times Qwen2.5's 32,768 tokens."""
    made = plan("gpu-80gb-long")
    assert value(made, "--max-model-len") == "131072"
    assert json.loads(value(made, "--hf-overrides") or "") == {
        "max_position_embeddings": 131_072,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1_000_000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 32_768,
        },
    }


QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 5120,
    "num_attention_heads": 40,
    "num_hidden_layers": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
    "rope_theta": 1000000.0,
    "vocab_size": 152064,
}
CONTEXT = """\
import json, sys
from vllm.config import ModelConfig
folder, tokens, overrides, told_in = sys.argv[1:]
config = ModelConfig(
    model=folder, tokenizer=folder, skip_tokenizer_init=True, dtype="float16",
    max_model_len=int(tokens), hf_overrides=json.loads(overrides),
)
open(told_in, "w").write(str(config.max_model_len))
"""


def test_vllm_takes_the_longer_context(vllm_python: Path, tmp_path: Path) -> None:
    """Qwen2.5's own config.json has 32,768 tokens, and vLLM refuses more of it unasked."""
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    made, told_in = plan("gpu-80gb-long"), tmp_path / "told"
    asked = [value(made, "--max-model-len") or "", value(made, "--hf-overrides") or ""]
    command = [str(vllm_python), "-c", CONTEXT, str(tmp_path), *asked, str(told_in)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, **made.env},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert told_in.read_text() == "131072"


@pytest.mark.parametrize("serving", SHIPPED)
def test_lora_is_off_until_an_adapter_is_named(serving: str) -> None:
    made = plan(serving)
    assert "--enable-lora" not in made.command
    made = plan(serving, adapters={"law": Path("/a/law"), "tale": Path("/a/tale")})
    at = made.command.index("--lora-modules")
    assert made.command[at + 1 : at + 3] == ("law=/a/law", "tale=/a/tale")
    assert "--enable-lora" in made.command


@pytest.mark.parametrize(("model", "name"), [("bge-m3", "law"), ("smollm2-135m", "smollm2-135m")])
def test_adapters_that_cannot_be_served_are_refused(model: str, name: str) -> None:
    with pytest.raises(UsageError):
        plan("cpu", model, adapters={name: Path("/a")})


def test_what_is_printed_can_be_pasted(tmp_path: Path) -> None:
    """A shell that reads it starts exactly the command, in exactly the environment."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    stand_in = folder / "python"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$OMP_NUM_THREADS" "$@"\n')
    stand_in.chmod(0o755)
    made = plan("cpu", weights=folder, python=stand_in)
    printed = subprocess.run(
        ["/bin/sh", "-c", made.shell()], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert printed == [made.env["OMP_NUM_THREADS"], *made.command[1:]]
    assert shlex.split(plan("nodes-ray").shell(), comments=True)[-1] != ""


@pytest.fixture(scope="module")
def vllm_python() -> Path:
    """A Python that has vLLM, for its own argument parser; no model is loaded."""
    named = os.environ.get("MGL_VLLM_PYTHON")
    if not named:
        pytest.skip("MGL_VLLM_PYTHON names no Python with vLLM")
    return Path(named)


PARSE = """\
import json, sys
from importlib import import_module

for place in ("common", "launchers", "openai"):  # since 0.33, in 0.32, before
    try:
        options = import_module(f"vllm.entrypoints.{place}.cli_args")
        break
    except ModuleNotFoundError:
        continue
from vllm.config import StructuredOutputsConfig
from vllm.utils.argparse_utils import FlexibleArgumentParser

told = {}
for name, arguments in json.load(sys.stdin).items():
    parser = options.make_arg_parser(FlexibleArgumentParser())
    try:
        parsed = parser.parse_args(arguments)
        options.validate_parsed_serve_args(parsed)
    except SystemExit:
        told[name] = "refused"
    except Exception as error:
        told[name] = repr(error)
    else:
        wanted = parsed.structured_outputs_config
        told[name] = {
            "model": parsed.model,
            "runner": parsed.runner,
            "backend": getattr(wanted, "backend", None),
            "compact": getattr(wanted, "disable_any_whitespace", None),
            "adapters": [entry.name for entry in parsed.lora_modules or ()],
            "context": parsed.max_model_len,
        }
json.dump(told, open(sys.argv[1], "w"))
"""


def test_vllm_takes_every_command_that_ships(vllm_python: Path, tmp_path: Path) -> None:
    plans = {
        f"{serving} {model}": plan(serving, model)
        for serving, profile in SHIPPED.items()
        for model in profile.models
    }
    adapters = {"law": Path("/a/law"), "tale": Path("/a/tale")}
    plans["adapters"] = plan("cpu", "smollm2-135m", adapters=adapters)
    for backend in ("xgrammar", "outlines"):
        plans[backend] = plan(with_backend("measured"), "smollm2-135m", compiler=backend)
    commands = {name: made.command[3:] for name, made in plans.items()}
    commands["misspelt"] = (*commands["cpu smollm2-135m"], "--enable-prefix-cashing")
    told_in = tmp_path / "told.json"
    subprocess.run(
        [str(vllm_python), "-c", PARSE, str(told_in)],
        input=json.dumps(commands),
        text=True,
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    told = json.loads(told_in.read_text())
    assert told.pop("misspelt") == "refused"
    for name, made in plans.items():
        parsed = told[name]
        assert isinstance(parsed, dict), f"{name}: {parsed}"
        assert parsed["model"] == value(made, "--model")
        assert parsed["context"] == int(value(made, "--max-model-len") or 0)
        assert (parsed["runner"] == "pooling") == (made.task != "generate")
        if made.task == "generate" and name not in ("xgrammar", "outlines"):
            assert (parsed["backend"], parsed["compact"]) == ("guidance", True)
    assert told["adapters"]["adapters"] == ["law", "tale"]
    assert told["xgrammar"]["backend"] == "xgrammar"
    assert (told["outlines"]["backend"], told["outlines"]["compact"]) == ("outlines", False)
