"""The libraries' models on random weights, each against the same model run by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from mgl.errors import ResourceError, UsageError
from mgl.retrieval.embedders import SentenceEmbedder
from mgl.retrieval.rerankers import Judge, LocalReranker
from tests.retrieval import tiny

pytestmark = [
    pytest.mark.retrieval,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

TEXTS = ["Ann met Bo in Rome.", "The ring was lost at sea.", "Who met Ann?", ""]
SPELLED = ["Ann met </s> Bo <mask>", "Ann met </x> Bo <xyzw>"]
ODD = ["", "half a pair \ud800", "ring " * 5000, "Ann\x00\n\n"]


@pytest.fixture(scope="module")
def qwen_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs the extra retrieval")
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
    with pytest.raises(UsageError):
        SentenceEmbedder(qwen_folder, model_id="q", dims=64)


def test_a_text_that_spells_a_control_token_is_text(qwen_folder: Path) -> None:
    embedder = SentenceEmbedder(qwen_folder, model_id="q", dims=tiny.HIDDEN)
    spelled, bracketed = embedder.embed(SPELLED)
    assert spelled == pytest.approx(bracketed, abs=1e-6)


def test_odd_texts_have_vectors_and_order_does_not_matter(qwen_folder: Path) -> None:
    embedder = SentenceEmbedder(qwen_folder, model_id="q", dims=tiny.HIDDEN)
    texts = [*TEXTS, *ODD]
    made = embedder.embed(texts)
    assert np.isfinite(made).all()
    assert embedder.embed(texts[::-1])[::-1] == pytest.approx(made, abs=1e-4)
    assert embedder.embed([]).shape == (0, tiny.HIDDEN)
    with ThreadPoolExecutor(4) as pool:
        for again in pool.map(embedder.embed, [texts] * 8):
            assert again == pytest.approx(made, abs=1e-4)


QUERY = "Who met Bo?"
JUDGED = [
    "Ann met Bo in Rome.",
    "The ring was lost at sea.",
    "Bo ? Bo . Bo ? Ann was at sea in Rome . The ring was of Ann .",
    "sea",
]


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that gives one logit a pair."""
    pytest.importorskip("sentence_transformers", reason="needs the extra retrieval")
    return tiny.roberta(tmp_path_factory.mktemp("scorer"), labels=1)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs the extra retrieval")
    return tiny.qwen3(tmp_path_factory.mktemp("qwen"), causal=True)


async def test_a_logit_becomes_a_probability(scorer: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from mgl.retrieval.rerankers import cross_encoder

    tokenizer = AutoTokenizer.from_pretrained(scorer)
    model = AutoModelForSequenceClassification.from_pretrained(scorer).eval()
    with torch.inference_mode():
        logits = [model(**tokenizer(QUERY, t, return_tensors="pt")).logits.item() for t in JUDGED]
    expected = [1 / (1 + math.exp(-logit)) for logit in logits]
    reranker = LocalReranker(lambda: cross_encoder(scorer, 64, "float32"), model_id="m")
    assert await reranker.scores(QUERY, JUDGED) == pytest.approx(expected, abs=1e-5)
    spelled, bracketed = await reranker.scores(QUERY, SPELLED)
    assert spelled == pytest.approx(bracketed, abs=1e-6)
    odd = await reranker.scores("\ud800", ["", "ring " * 5000])
    assert len(odd) == 2
    await reranker.aclose()


async def test_qwen3_is_asked_for_yes_or_no_under_its_own_prompt(qwen: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from mgl.retrieval.rerankers import qwen3_reranker

    tokenizer = AutoTokenizer.from_pretrained(qwen)
    model = AutoModelForCausalLM.from_pretrained(qwen).eval()
    template = (Path(__file__).parents[2] / "serving/templates/qwen3-reranker.jinja").read_text()
    expected = []
    for text in JUDGED:
        messages = [{"role": "query", "content": QUERY}, {"role": "document", "content": text}]
        prompt = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
        ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            last = model(ids).logits[0, -1]
        no, yes = (last[tokenizer.convert_tokens_to_ids(word)].exp() for word in ("no", "yes"))
        expected.append((yes / (yes + no)).item())
    reranker = LocalReranker(lambda: qwen3_reranker(qwen, 256, "float32"), model_id="q")
    assert await reranker.scores(QUERY, JUDGED) == pytest.approx(expected, abs=1e-4)
    assert max(expected) - min(expected) > 1e-3
    spelled, bracketed = await reranker.scores(QUERY, SPELLED)
    assert spelled == pytest.approx(bracketed, abs=1e-6)
    long = ["ring " * 5000]
    assert (await reranker.scores(QUERY, long)).shape == (1,)


def judge_of(answer: ArrayLike) -> Judge:
    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        del query, texts
        return answer

    return judge


async def test_a_model_loads_with_the_first_text_and_a_failed_load_is_tried_again() -> None:
    loads = 0

    def load() -> Judge:
        nonlocal loads
        loads += 1
        if loads == 1:
            raise ResourceError("no weights", hint="fetch them")
        return judge_of([0.25])

    reranker = LocalReranker(load, model_id="m")
    assert (await reranker.scores(QUERY, [])).shape == (0,)
    assert loads == 0
    with pytest.raises(ResourceError):
        await reranker.scores(QUERY, ["a"])
    assert (await reranker.scores(QUERY, ["a"])).tolist() == [0.25]
    await reranker.scores(QUERY, ["a"])
    assert loads == 2
