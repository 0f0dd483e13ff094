"""The libraries' embedders on random weights, each against the same model run by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgl.errors import ResourceError, UsageError
from mgl.retrieval.embedders.bge_m3 import BgeM3Embedder, multi_score, sparse_score
from mgl.retrieval.embedders.sentences import SentenceEmbedder
from tests.retrieval import tiny

pytestmark = [
    pytest.mark.retrieval,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

TEXTS = ["Ann met Bo in Rome.", "The ring was lost at sea.", "Who met Ann?", ""]
ODD = ["", "half a pair \ud800", "ring " * 5000, "Ann\x00\n\n"]


@pytest.fixture(scope="module")
def m3_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("FlagEmbedding", reason="needs mgl[retrieval]")
    return tiny.bge_m3(tmp_path_factory.mktemp("m3"))


@pytest.fixture(scope="module")
def m3(m3_folder: Path) -> BgeM3Embedder:
    return BgeM3Embedder(m3_folder, model_id="m3", dims=tiny.HIDDEN, max_tokens=64, dtype="float32")


@pytest.fixture(scope="module")
def qwen_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs mgl[retrieval]")
    return tiny.qwen3(tmp_path_factory.mktemp("qwen"), causal=False)


def states(folder: Path, text: str) -> tuple[list[int], Any]:
    """Token ids and last hidden states of one text, by transformers alone."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    ids = AutoTokenizer.from_pretrained(folder)(text)["input_ids"]
    with torch.inference_mode():
        hidden = AutoModel.from_pretrained(folder)(torch.tensor([ids])).last_hidden_state[0]
    return ids, hidden


def unit(vector: Any) -> np.ndarray:
    array = np.asarray(vector, dtype=np.float32)
    return array / np.linalg.norm(array, axis=-1, keepdims=True)


def test_bge_m3_gives_three_kinds_of_vectors(m3: BgeM3Embedder, m3_folder: Path) -> None:
    import torch

    layers = {
        name: torch.load(m3_folder / f"{name}_linear.pt", weights_only=True)
        for name in ("colbert", "sparse")
    }
    for text, made in zip(TEXTS, m3.represent(TEXTS), strict=True):
        ids, hidden = states(m3_folder, text)
        assert made.dense == pytest.approx(unit(hidden[0]), abs=1e-5)
        multi = hidden[1:] @ layers["colbert"]["weight"].T + layers["colbert"]["bias"]
        assert made.multi == pytest.approx(unit(multi), abs=1e-5)
        weights = (hidden @ layers["sparse"]["weight"].T + layers["sparse"]["bias"]).relu()[:, 0]
        expected: dict[int, float] = {}
        for token, weight in zip(ids, weights.tolist(), strict=True):
            if token > 3 and weight > 0:  # the first four are special
                expected[token] = max(expected.get(token, 0.0), weight)
        assert dict(made.sparse) == pytest.approx(expected, abs=1e-5)
    assert m3.embed(TEXTS) == pytest.approx(
        np.stack([made.dense for made in m3.represent(TEXTS)]), abs=1e-5
    )


def test_scores_of_sparse_and_multi_vectors_by_hand() -> None:
    assert sparse_score({1: 2.0, 2: 0.5}, {2: 4.0, 3: 9.0}) == 2.0
    assert sparse_score({}, {1: 1.0}) == 0.0
    query = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    text = np.array([[0.6, 0.8], [1.0, 0.0], [-1.0, 0.0]], dtype=np.float32)
    assert multi_score(query, text) == pytest.approx((1.0 + 0.8) / 2)


def test_a_sentence_transformer_pools_and_prefixes_as_its_folder_says(qwen_folder: Path) -> None:
    embedder = SentenceEmbedder(qwen_folder, model_id="q", dims=tiny.HIDDEN, dtype="float32")
    passages, queries = embedder.embed(TEXTS), embedder.embed(TEXTS, task="query")
    for text, passage, query in zip(TEXTS, passages, queries, strict=True):
        assert passage == pytest.approx(unit(states(qwen_folder, text)[1][-1]), abs=1e-5)
        prefixed = unit(states(qwen_folder, f"Query: {text}")[1][-1])
        assert query == pytest.approx(prefixed, abs=1e-5)


def test_vectors_are_cut_and_a_given_prefix_goes_before_the_folders(qwen_folder: Path) -> None:
    whole = SentenceEmbedder(qwen_folder, model_id="q", dims=tiny.HIDDEN).embed(TEXTS)
    cut = SentenceEmbedder(qwen_folder, model_id="q:8", dims=8, query_prefix="where: ")
    assert cut.embed(TEXTS) == pytest.approx(unit(whole[:, :8]), abs=1e-5)
    asked = cut.embed(["the ring"], task="query")
    assert asked == pytest.approx(cut.embed(["where: the ring"]), abs=1e-5)
    with pytest.raises(UsageError, match="vectors of 32 numbers, and 64"):
        SentenceEmbedder(qwen_folder, model_id="q", dims=64)


def test_bfloat16_and_float32_see_alike(qwen_folder: Path) -> None:
    one, other = (
        SentenceEmbedder(qwen_folder, model_id="q", dims=tiny.HIDDEN, dtype=dtype).embed(TEXTS)
        for dtype in ("float32", "bfloat16")
    )
    assert (one * other).sum(axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=0.01)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", ["m3", "sentences"])
def test_odd_texts_have_vectors_and_order_does_not_matter(
    kind: str, m3: BgeM3Embedder, qwen_folder: Path
) -> None:
    embedder = m3 if kind == "m3" else SentenceEmbedder(qwen_folder, model_id="q", dims=tiny.HIDDEN)
    texts = [*TEXTS, *ODD]
    made = embedder.embed(texts)
    assert np.isfinite(made).all()
    assert embedder.embed(texts[::-1])[::-1] == pytest.approx(made, abs=1e-4)
    assert embedder.embed([]).shape == (0, tiny.HIDDEN)
    with ThreadPoolExecutor(4) as pool:
        for again in pool.map(embedder.embed, [texts] * 8):
            assert again == pytest.approx(made, abs=1e-4)


def test_a_folder_that_is_no_model_is_told(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs mgl[retrieval]")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ResourceError, match="cannot be loaded"):
        SentenceEmbedder(tmp_path, model_id="m", dims=8)
    with pytest.raises(ResourceError, match="cannot be loaded"):
        BgeM3Embedder(tmp_path, model_id="m", dims=8)


@pytest.mark.weights
@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="needs mgl[retrieval]")
def test_minilm_finds_what_shares_no_word(minilm_weights: Path) -> None:
    embedder = SentenceEmbedder(minilm_weights, model_id="all-minilm-l6-v2", dims=384)
    passages = [
        "Melanie went to a pottery workshop with her kids.",
        "The physician examined the patient's heart.",
        "The stock market fell sharply on Monday.",
    ]
    queries = ["Who made ceramics?", "A doctor looked at someone", "Shares lost value"]
    likeness = embedder.embed(queries, task="query") @ embedder.embed(passages).T
    assert likeness.argmax(axis=1).tolist() == [0, 1, 2]
