"""Encoders on OpenVINO: against a forward pass in numpy, and against transformers' own models."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from mgl.errors import ResourceError
from mgl.models.profiles import load_profile
from mgl.retrieval.encoders import (
    Encoder,
    EncoderEmbedder,
    InteractionJudge,
    encoder_judge,
    is_encoder,
)
from mgl.retrieval.models import Source
from mgl.retrieval.opening import open_embedder
from tests.patience import PATIENCE_S
from tests.retrieval import tiny

TEXTS = ["Ann met Bo in Rome.", "The ring was lost at sea.", "Who met Ann?", "", "ring " * 500]
QUERY, JUDGED = "who lost the ring ?", ["Ann met Bo.", "The ring was lost at sea.", "Bo " * 200]
DIMS, HEADS, LAYERS, LIMIT = 8, 2, 2, 16
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]

erf = np.vectorize(math.erf)


def write_bert(folder: Path) -> Path:
    """A BERT of random weights that knows eleven words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = [*SPECIAL, *"Ann met Bo in Rome ring who".split()]
    known = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    draw = np.random.default_rng(7)
    shapes = {
        "embeddings.word_embeddings.weight": (len(words), DIMS),
        "embeddings.position_embeddings.weight": (LIMIT, DIMS),
        "embeddings.token_type_embeddings.weight": (2, DIMS),
        **{f"embeddings.LayerNorm.{part}": (DIMS,) for part in ("weight", "bias")},
        **{f"{name}.weight": (DIMS, DIMS) for name in ("pooler.dense",)},
        "pooler.dense.bias": (DIMS,),
        "classifier.weight": (1, DIMS),
        "classifier.bias": (1,),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        for part in ("attention.self.query", "attention.self.key", "attention.self.value"):
            shapes |= {f"{name}{part}.weight": (DIMS, DIMS), f"{name}{part}.bias": (DIMS,)}
        for part, size in {
            "attention.output.dense": (DIMS, DIMS),
            "intermediate.dense": (2 * DIMS, DIMS),
            "output.dense": (DIMS, 2 * DIMS),
        }.items():
            shapes |= {f"{name}{part}.weight": size, f"{name}{part}.bias": size[:1]}
        for part in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{name}{part}.weight": (DIMS,), f"{name}{part}.bias": (DIMS,)}
    save_file(
        {name: draw.normal(size=size).astype(np.float32) for name, size in shapes.items()},
        folder / "model.safetensors",
    )
    config = {
        "model_type": "bert",
        "hidden_size": DIMS,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": LIMIT,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def run_bert(folder: Path, ids: list[int], types: list[int]) -> NDArray[np.float64]:
    """The last hidden states of one text, as the paper has them (Devlin et al., 2019)."""
    from safetensors.numpy import load_file

    weights = load_file(folder / "model.safetensors")

    def dense(state: Any, name: str) -> Any:
        return state @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(state: Any, name: str) -> Any:
        centred = state - state.mean(-1, keepdims=True)
        scaled = centred / np.sqrt(state.var(-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    state = weights["embeddings.word_embeddings.weight"][ids].astype(np.float64)
    state = state + weights["embeddings.position_embeddings.weight"][: len(ids)]
    state = norm(
        state + weights["embeddings.token_type_embeddings.weight"][types], "embeddings.LayerNorm"
    )
    for layer in range(LAYERS):
        name, size = f"encoder.layer.{layer}.", DIMS // HEADS
        query, key, value = (
            dense(state, f"{name}attention.self.{part}").reshape(-1, HEADS, size).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        likeness = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(size))
        mixed = (likeness / likeness.sum(-1, keepdims=True)) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(-1, DIMS)
        state = norm(
            dense(mixed, f"{name}attention.output.dense") + state,
            f"{name}attention.output.LayerNorm",
        )
        inner = dense(state, f"{name}intermediate.dense")
        inner = inner * (1 + erf(inner / math.sqrt(2))) / 2
        state = norm(dense(inner, f"{name}output.dense") + state, f"{name}output.LayerNorm")
    return np.asarray(state)


def tokens(folder: Path, *texts: str) -> tuple[list[int], list[int]]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(LIMIT)
    encoded = tokenizer.encode(*texts)
    return encoded.ids, encoded.type_ids


def test_a_vector_is_the_mean_of_the_last_states(tmp_path: Path) -> None:
    embedder = EncoderEmbedder(write_bert(tmp_path), model_id="b", dims=DIMS)
    found = embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        mean = run_bert(tmp_path, *tokens(tmp_path, text)).mean(0)
        assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert embedder.embed(TEXTS[::-1]) == pytest.approx(found[::-1], abs=1e-6)
    assert embedder.embed([]).shape == (0, DIMS)


def test_a_text_that_spells_a_control_token_is_text(tmp_path: Path) -> None:
    embedder = EncoderEmbedder(write_bert(tmp_path), model_id="b", dims=DIMS)
    spelled, bracketed = embedder.embed(["Ann [SEP] Bo", "Ann [XYZ] Bo"])
    assert spelled == pytest.approx(bracketed, abs=1e-6)


def test_a_pair_is_scored_by_the_first_token(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    judge = encoder_judge(write_bert(tmp_path), 512)
    weights = load_file(tmp_path / "model.safetensors")
    expected = []
    for text in JUDGED:
        first = run_bert(tmp_path, *tokens(tmp_path, QUERY, text))[0]
        pooled = np.tanh(weights["pooler.dense.weight"] @ first + weights["pooler.dense.bias"])
        logit = weights["classifier.weight"] @ pooled + weights["classifier.bias"]
        expected.append(1 / (1 + math.exp(-logit[0])))
    assert judge(QUERY, JUDGED) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("spoilt", ["model.safetensors", "tokenizer.json"])
def test_a_folder_that_does_not_load_is_named(tmp_path: Path, spoilt: str) -> None:
    (write_bert(tmp_path) / spoilt).write_bytes(b"spoilt")
    with pytest.raises(ResourceError, match=tmp_path.name):
        Encoder(tmp_path, "mean", LIMIT)


@pytest.mark.parametrize(
    ("file", "content", "runs"),
    [
        ("config.json", {"model_type": "bert"}, True),
        ("config.json", {"model_type": "qwen3"}, False),
        ("config.json", {"model_type": "bert", "hidden_act": "relu"}, False),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, True),
        ("1_Pooling/config.json", {"pooling_mode_lasttoken": True}, False),
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], False),
        ("model.safetensors", None, False),
    ],
)
def test_what_runs_here_is_known_from_its_files(
    tmp_path: Path, file: str, content: object, runs: bool
) -> None:
    folder = write_bert(tmp_path)
    (folder / "1_Pooling").mkdir()
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(json.dumps(content))
    assert is_encoder(folder) is runs


def test_encoders_load_side_by_side_and_without_telemetry(tmp_path: Path) -> None:
    """Two threads import OpenVINO at once where an engine and an embedder start together."""
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from mgl.llm.engines.openvino import import_genai
from mgl.retrieval.encoders import Encoder
load = lambda n: Encoder(Path(sys.argv[1]), "mean", 16) if n % 2 else import_genai()
with ThreadPoolExecutor(8) as pool:
    list(pool.map(load, range(8)))
assert not [name for name in sys.modules if name.startswith("openvino_telemetry")]
"""
    command = [sys.executable, "-c", code, str(write_bert(tmp_path))]
    subprocess.run(command, check=True, timeout=PATIENCE_S)


@pytest.mark.weights
def test_the_default_embedder_needs_no_torch(minilm_weights: Path, mgl_home: Path) -> None:
    opened = open_embedder("all-minilm-l6-v2", mgl_home, source=Source(weights=minilm_weights))
    vectors = opened.embed(["Ann moved to Lisbon.", "Where does Ann live?", "The sea is blue."])
    assert load_profile("all-minilm-l6-v2").embedding is not None
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[2] @ vectors[1]
    opened.close()


FAMILIES = ["bert", "mpnet", "xlm-roberta"]


def random_encoder(folder: Path, kind: str, *, labels: int | None = None) -> Path:
    """A model of transformers with random weights, written as a sentence-transformer."""
    transformers: Any = pytest.importorskip("transformers", reason="needs the extra retrieval")
    size = tiny.tokenizer(folder, kind="roberta")
    name = {"bert": "Bert", "mpnet": "MPNet", "xlm-roberta": "XLMRoberta"}[kind]
    config = getattr(transformers, f"{name}Config")(
        vocab_size=size,
        hidden_size=tiny.HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=300,
        pad_token_id=1,
        num_labels=labels or 1,
        initializer_range=0.5,
    )
    transformers.set_seed(5)
    made = "Model" if labels is None else "ForSequenceClassification"
    getattr(transformers, f"{name}{made}")(config).save_pretrained(folder)
    return folder


@pytest.mark.retrieval
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("kind", FAMILIES)
def test_vectors_are_those_of_sentence_transformers(
    tmp_path: Path, kind: str, pooling: str
) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra retrieval")
    from mgl.retrieval.embedders import SentenceEmbedder

    folder = tiny.sentence_transformer(random_encoder(tmp_path, kind), pooling)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 256}))
    theirs = SentenceEmbedder(folder, model_id="m", dims=tiny.HIDDEN, dtype="float32")
    ours = EncoderEmbedder(folder, model_id="m", dims=tiny.HIDDEN)
    for task in ("passage", "query"):
        assert ours.embed(TEXTS, task=task) == pytest.approx(
            theirs.embed(TEXTS, task=task), abs=1e-5
        )


@pytest.mark.retrieval
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_scores_are_those_of_the_cross_encoder(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra retrieval")
    from mgl.retrieval.rerankers import cross_encoder

    folder = random_encoder(tmp_path, kind, labels=1)
    expected = cross_encoder(folder, 64, "float32")(QUERY, JUDGED)
    assert encoder_judge(folder, 64)(QUERY, JUDGED) == pytest.approx(expected, abs=1e-5)


@pytest.mark.weights
def test_the_default_embedder_reranks_by_its_tokens(minilm_weights: Path) -> None:
    judge = InteractionJudge(minilm_weights, 512, 15.1, -11.7)
    texts = ["Bo: I am tired.", "Ann: The ring was lost at sea.", "Bo: Really?"]
    chances = judge("Where did Ann lose her ring?", texts)
    assert chances.argmax() == 1
    beside = judge("Where did Ann lose her ring?", texts, [[], [], [1]])
    assert beside[:2] == pytest.approx(chances[:2])
    assert chances[2] < beside[2] < beside[1]
