"""The libraries' rerankers on random weights, each against the same model run by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from numpy.typing import ArrayLike

from mgl.errors import EngineRejected, EngineUnavailable, ResourceError
from mgl.retrieval.rerankers.local import Judge, LocalReranker
from tests.retrieval import tiny

QUERY = "Who met Bo?"
TEXTS = [
    "Ann met Bo in Rome.",
    "The ring was lost at sea.",
    "Bo ? Bo . Bo ? Ann was at sea in Rome . The ring was of Ann .",
    "sea",
]

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that gives one logit a pair."""
    pytest.importorskip("sentence_transformers", reason="needs mgl[retrieval]")
    pytest.importorskip("FlagEmbedding", reason="needs mgl[retrieval]")
    return tiny.roberta(tmp_path_factory.mktemp("scorer"), labels=1)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs mgl[retrieval]")
    return tiny.qwen3(tmp_path_factory.mktemp("qwen"), causal=True)


@pytest.mark.retrieval
@pytest.mark.parametrize("library", ["cross-encoder", "flag"])
async def test_a_logit_becomes_a_probability(scorer: Path, library: str) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from mgl.retrieval.rerankers.cross_encoder import cross_encoder
    from mgl.retrieval.rerankers.flag import flag_reranker

    def load() -> Judge:
        if library == "flag":
            return flag_reranker(scorer, 64, "float32")
        return cross_encoder(scorer, "float32")

    tokenizer = AutoTokenizer.from_pretrained(scorer)
    model = AutoModelForSequenceClassification.from_pretrained(scorer).eval()
    with torch.inference_mode():
        logits = [model(**tokenizer(QUERY, t, return_tensors="pt")).logits.item() for t in TEXTS]
    expected = [1 / (1 + math.exp(-logit)) for logit in logits]
    reranker = LocalReranker(load, model_id="m")
    assert await reranker.scores(QUERY, TEXTS) == pytest.approx(expected, abs=1e-5)
    odd = await reranker.scores("\ud800", ["", "ring " * 5000])
    assert len(odd) == 2
    await reranker.aclose()


@pytest.mark.retrieval
async def test_qwen3_is_asked_for_yes_or_no_under_its_own_prompt(qwen: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from mgl.retrieval.rerankers.qwen3 import qwen3_reranker

    tokenizer = AutoTokenizer.from_pretrained(qwen)
    model = AutoModelForCausalLM.from_pretrained(qwen).eval()
    template = (Path(__file__).parents[3] / "serving/templates/qwen3-reranker.jinja").read_text()
    expected = []
    for text in TEXTS:
        messages = [{"role": "query", "content": QUERY}, {"role": "document", "content": text}]
        prompt = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
        ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            last = model(ids).logits[0, -1]
        no, yes = (last[tokenizer.convert_tokens_to_ids(word)].exp() for word in ("no", "yes"))
        expected.append((yes / (yes + no)).item())
    reranker = LocalReranker(lambda: qwen3_reranker(qwen, 256, "float32"), model_id="q")
    assert await reranker.scores(QUERY, TEXTS) == pytest.approx(expected, abs=1e-4)
    assert max(expected) - min(expected) > 1e-3
    long = ["ring " * 5000]
    assert (await reranker.scores(QUERY, long)).shape == (1,)


@pytest.mark.retrieval
def test_a_model_of_several_labels_is_no_reranker(scorer: Path, tmp_path: Path) -> None:
    from mgl.retrieval.rerankers.cross_encoder import cross_encoder

    assert scorer.is_dir()
    with pytest.raises(ResourceError, match="gives 3 scores a pair"):
        cross_encoder(tiny.roberta(tmp_path, labels=3))


def judge_of(answer: ArrayLike) -> Judge:
    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        del query, texts
        return answer

    return judge


@pytest.mark.parametrize("answer", [[0.5], [0.5, 1.5], [0.5, -0.1], [0.5, float("nan")]])
async def test_what_is_no_probability_is_refused(answer: list[float]) -> None:
    reranker = LocalReranker(lambda: judge_of(answer), model_id="m")
    with pytest.raises(EngineRejected, match="no probability for each of 2"):
        await reranker.scores(QUERY, ["a", "b"])


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


async def test_a_library_that_fails_is_an_engine_that_fails() -> None:
    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        raise RuntimeError(f"out of memory: {query} {len(texts)}")

    with pytest.raises(EngineUnavailable, match="m failed: out of memory"):
        await LocalReranker(lambda: judge, model_id="m").scores(QUERY, TEXTS)
