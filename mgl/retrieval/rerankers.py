"""Rerankers: P(relevant) of each text for a query, read together or by cosine.

    reranker = LocalReranker(lambda: cross_encoder(folder, 512), model_id="ms-marco-minilm@main")

Those of no model of their own keep the order (``IdentityReranker``) or go by an embedder's cosine
(``SimilarityReranker``). ``mgl.retrieval.servers`` has the reranker behind a URL. No language model
is asked: its Yes for each of thirty texts ranks far worse than words in context (LOG.md).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.errors import EngineRejected, ResourceError
from mgl.prompt import Prompt
from mgl.retrieval.base import Embedder
from mgl.retrieval.computing import choose_device, choose_dtype, load_model, run_model, to_utf8
from mgl.retrieval.ranking import likeness

if TYPE_CHECKING:
    from mgl.models.profiles import FloatName


class IdentityReranker:
    """Keeps the order of the texts: scores fall from 1 for the first to 1/n for the last."""

    model_id = "identity"

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        del query
        return np.linspace(1, 0, len(texts), endpoint=False, dtype=np.float32)

    async def aclose(self) -> None:
        pass


FITTED: Final[Mapping[str, tuple[float, float]]] = {
    "all-minilm-l6-v2": (8.1, -7.7),
    "all-mpnet-base-v2": (9.7, -8.0),
}
"""Slope and offset of the sigmoid that makes a cosine a probability, by embedder profile. Fitted by
logistic regression on the five development conversations of LoCoMo: 760 questions of categories 1
to 4, each with its 30 turns of highest cosine; 3% of these are evidence. Fitted on four
conversations, the log loss on the fifth is within 0.01 of a fit on the fifth itself. Other texts
have another share of relevant ones, and so another offset."""

_UNFITTED: Final = (8.9, -7.9)  # between the two


class SimilarityReranker:
    """Scores by cosine, on a scale that can be multiplied with other judgements.

    For an embedder without a fitted sigmoid ``model_id`` says "unfitted". The embedder stays the
    caller's: ``aclose`` leaves it open.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        fitted = FITTED.get(embedder.model_id.split("@")[0])
        self._slope, self._offset = fitted or _UNFITTED
        self._label = "similarity" if fitted else "similarity, unfitted"

    @property
    def model_id(self) -> str:
        return f"{self._embedder.model_id} by {self._label}"

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        cosines = await likeness(self._embedder, query, texts)
        return np.asarray(1 / (1 + np.exp(-(self._slope * cosines + self._offset))), np.float32)

    async def aclose(self) -> None:
        pass


Judge = Callable[..., ArrayLike]
"""Scores texts for a query: P(relevant) of each, in their order."""


class LocalReranker:
    """Runs a judge beside the event loop, one call at a time; ``load`` makes it on first use."""

    def __init__(self, load: Callable[[], Judge], *, model_id: str) -> None:
        self.model_id = model_id
        self._load = load
        self._judge: Judge | None = None
        self._working = threading.Lock()

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros(0, dtype=np.float32)
        return await asyncio.to_thread(self._scores, query, texts)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._forget)

    def _scores(self, query: str, texts: Sequence[str], *more: Any) -> NDArray[np.float32]:
        with self._working:
            if self._judge is None:
                self._judge = self._load()
            (asked,) = to_utf8([query])
            with run_model(self.model_id):
                raw = self._judge(asked, to_utf8(texts), *more)
        return check_probabilities(raw, count=len(texts), model_id=self.model_id)

    def _forget(self) -> None:
        with self._working:
            self._judge = None


class ContextReranker(LocalReranker):
    """Runs a judge that can also read a text with those beside it (``InteractionJudge``)."""

    async def scores_in_context(
        self, query: str, texts: Sequence[str], around: Sequence[Sequence[int]]
    ) -> NDArray[np.float32]:
        """P(relevant) of each text; ``around`` has the places of those that stand beside it."""
        if not texts:
            return np.zeros(0, dtype=np.float32)
        return await asyncio.to_thread(self._scores, query, texts, around)


def check_probabilities(raw: ArrayLike, *, count: int, model_id: str) -> NDArray[np.float32]:
    """Check that there are ``count`` numbers from 0 to 1; EngineRejected where not."""
    found = np.asarray(raw, dtype=np.float32)
    if found.shape != (count,) or not ((found >= 0) & (found <= 1)).all():
        raise EngineRejected(
            f"{model_id} gave no probability for each of {count} texts",
            hint="check that the model is a reranker; in float16 some overflow: use float32",
        )
    return found


_PAIRS_AT_ONCE: Final = 32
_PROMPTS_AT_ONCE: Final = 8


def cross_encoder(folder: Path, max_tokens: int, dtype: FloatName | None = None) -> Judge:
    """Load a cross-encoder, such as ms-marco-MiniLM or bge-reranker-v2-m3, from its folder.

    Query and text together are truncated at ``max_tokens``, or at the model's own limit; logits
    become probabilities. Raises UsageError and ResourceError.
    """
    with load_model(folder):
        import torch
        from sentence_transformers import CrossEncoder

        model: Any = CrossEncoder(
            str(folder),
            device=choose_device(),
            local_files_only=True,
            model_kwargs={"dtype": getattr(torch, choose_dtype(dtype))},
            processor_kwargs={"split_special_tokens": True},
            activation_fn=torch.nn.Sigmoid(),
        )
    model.max_length = min(model.max_length or max_tokens, max_tokens)
    if model.num_labels != 1:
        raise ResourceError(
            f"the model in {folder} gives {model.num_labels} scores per pair, not one",
            hint="use a cross-encoder trained for retrieval, with one label",
        )

    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        pairs = [(query, text) for text in texts]
        scores: ArrayLike = model.predict(pairs, batch_size=_PAIRS_AT_ONCE, show_progress_bar=False)
        return scores

    return judge


_PREFIX: Final = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
_SUFFIX: Final = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"

PAIR: Final = Prompt(
    "qwen3_reranker.pair",
    source="Qwen3-Reranker's model card",
    text=(
        "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n"
        "<Query>: {query}\n<Document>: {document}"
    ),
    variables=("query", "document"),
)


def qwen3_reranker(folder: Path, max_tokens: int, dtype: FloatName | None = None) -> Judge:
    """Load a Qwen3-Reranker from its folder: P("yes") of "yes" and "no" after the prompt.

    A document is truncated so that the prompt has ``max_tokens``. Source: Zhang et al., Qwen3
    Embedding (2025); the prompt is the publisher's. Raises UsageError and ResourceError.
    """
    with load_model(folder):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from mgl.llm.engines.transformers import encode_texts, find_control

        tokenizer: Any = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, padding_side="left"
        )
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, dtype=getattr(torch, choose_dtype(dtype))
        )
        model.eval().to(choose_device())
    words = [tokenizer.encode(word, add_special_tokens=False) for word in ("no", "yes")]
    if any(len(tokens) != 1 for tokens in words):
        raise ResourceError(
            f"the tokenizer in {folder} has no single tokens for yes and no",
            hint="give the folder of a Qwen3-Reranker",
        )
    no_yes = [tokens[0] for tokens in words]
    prefix, suffix = (
        tokenizer.encode(text, add_special_tokens=False) for text in (_PREFIX, _SUFFIX)
    )
    room, control = max_tokens - len(prefix) - len(suffix), find_control(tokenizer)

    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        pairs = [PAIR.render(query=query, document=text) for text in texts]
        bodies = encode_texts(tokenizer, control, pairs)
        prompts = [[*prefix, *body[:room], *suffix] for body in bodies]
        found = np.zeros(len(prompts), dtype=np.float32)
        order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))  # little padding
        for start in range(0, len(order), _PROMPTS_AT_ONCE):
            places = order[start : start + _PROMPTS_AT_ONCE]
            batch = tokenizer.pad(
                {"input_ids": [prompts[at] for at in places]}, return_tensors="pt"
            )
            found[places] = shares(batch)
        return found

    def shares(batch: Any) -> NDArray[np.float32]:
        with torch.inference_mode():
            logits = model(**batch.to(model.device), logits_to_keep=1).logits[:, -1, no_yes]
        shares: NDArray[np.float32] = logits.float().softmax(dim=-1)[:, 1].cpu().numpy()
        return shares

    return judge
