"""The embedder or reranker that a name stands for. Opening costs nothing: weights are found or
fetched, and libraries loaded, with the first text.

    embedder = open_embedder("all-minilm-l6-v2", home(), cache=store)
    reranker = open_reranker("similarity", home(), embedder=embedder)

A name is a model profile's, its publisher's (``BAAI/bge-m3``) or the path of a model folder; an
embedder's may end in the dimensions that are kept (``qwen3-embedding-0.6b:128``). With a
``Source`` of a ``base_url`` a server computes. Three rerankers are no models of their own:
``identity``, ``similarity`` (of an embedder) and ``yes-no`` (of a language model).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from mgl.errors import UsageError
from mgl.retrieval.base import Embedder, Reranker
from mgl.retrieval.computing import require_package
from mgl.retrieval.models import RetrievalModel, Source, find_model

if TYPE_CHECKING:
    from mgl.llm.base import LLM
    from mgl.retrieval.embedders.cached import VectorCache
    from mgl.retrieval.rerankers.local import Judge

__all__ = ["DEFAULT_EMBEDDER", "DEFAULT_RERANKER", "YES_NO", "open_embedder", "open_reranker"]

DEFAULT_EMBEDDER: Final = "all-minilm-l6-v2"
"""all-mpnet-base-v2 costs about five times as much, and finds 0.775 of the evidence in the
conversations where this one finds 0.750."""

DEFAULT_RERANKER: Final = "similarity"

YES_NO: Final = "yes-no"
"""The reranker that asks the language model of the one who reads."""

_CUT: Final = re.compile(r"(.+):([0-9]+)")
_FLAG_TOKENS = 1024  # as the publisher's own measurements
_MOST_TOKENS = 8192

GivenT = TypeVar("GivenT")


def open_embedder(
    name: str | Path,
    home: Path,
    *,
    dims: int | None = None,
    source: Source | None = None,
    cache: VectorCache | None = None,
) -> Embedder:
    """The embedder of a name. ``dims``, or those that the name ends in, cut its vectors, where the
    model was trained for that.

    With a ``cache`` (a ``Store``) each text is embedded once, over runs. Raises UsageError where
    the name is unknown, the dims cannot be had, or the extra ``mgl[retrieval]`` is missing, and
    ResourceError where a folder holds no model.
    """
    from mgl.retrieval.embedders.deferred import DeferredEmbedder

    source = source or Source()
    if dims is None and isinstance(name, str) and (cut := _CUT.fullmatch(name)):
        name, dims = cut[1], int(cut[2])
    model = find_model(name, "embed", source, home)
    size = _dims(name, model, dims)
    if model.embedding is not None and size < model.embedding.dims:
        model_id = f"{model.identity}:{size}"
    else:
        model_id = model.identity
    if source.base_url is None:
        require_package(_module(model))
    start = partial(_start_embedder, model, model_id, size, source)
    embedder = DeferredEmbedder(start, model_id=model_id, dims=size)
    if cache is None:
        return embedder
    from mgl.retrieval.embedders.cached import CachedEmbedder

    return CachedEmbedder(embedder, cache)


def open_reranker(
    name: str | Path,
    home: Path,
    *,
    source: Source | None = None,
    embedder: Embedder | None = None,
    llm: LLM | None = None,
) -> Reranker:
    """The reranker of a name; errors as ``open_embedder``.

    ``similarity`` needs the ``embedder`` and ``yes-no`` the ``llm``, which stay the caller's.
    """
    source = source or Source()
    if name == "identity":
        from mgl.retrieval.rerankers.identity import IdentityReranker

        return IdentityReranker()
    if name == "similarity":
        from mgl.retrieval.rerankers.similarity import SimilarityReranker

        return SimilarityReranker(_given(embedder, name, "an embedding model"))
    if name == YES_NO:
        from mgl.retrieval.rerankers.language_model import YesNoReranker

        return YesNoReranker(_given(llm, name, "a language model"))
    model = find_model(name, "rerank", source, home)
    if source.base_url is not None:
        from mgl.retrieval.rerankers.server import ServerReranker

        return ServerReranker(
            source.base_url, names=model.names, model_id=model.identity, api_key=source.api_key
        )
    require_package(_module(model))
    from mgl.retrieval.rerankers.local import LocalReranker

    return LocalReranker(partial(_load_judge, model, source), model_id=model.identity)


def _dims(name: str | Path, model: RetrievalModel, asked: int | None) -> int:
    """How long the vectors shall be."""
    embedding = model.embedding
    if embedding is None:
        if asked is None:
            raise UsageError(
                f"how long the vectors of {name} are is not known",
                hint="say its dims, or write a profile of it into MGL_HOME/models",
            )
        return asked
    if asked is None or asked == embedding.dims:
        return embedding.dims
    if not 0 < asked < embedding.dims:
        raise UsageError(
            f"{name} has vectors of {embedding.dims} numbers, and {asked} are asked for",
            hint=f"ask for {embedding.dims} or fewer",
        )
    if not embedding.matryoshka:
        raise UsageError(
            f"the first {asked} numbers of a vector of {name} are no vector of it",
            hint="only models that were trained so can be cut, for instance qwen3-embedding-0.6b",
        )
    return asked


def _start_embedder(model: RetrievalModel, model_id: str, dims: int, source: Source) -> Embedder:
    prefix = model.embedding.query_prefix if model.embedding else ""
    if source.base_url is not None:
        from mgl.retrieval.embedders.server import ServerEmbedder

        return ServerEmbedder(
            source.base_url,
            names=model.names,
            model_id=model_id,
            dims=dims,
            query_prefix=prefix or "",
            api_key=source.api_key,
        )
    if _module(model) == "FlagEmbedding":
        from mgl.retrieval.embedders.bge_m3 import BgeM3Embedder

        return BgeM3Embedder(
            model.folder(),
            model_id=model_id,
            dims=dims,
            max_tokens=model.context_tokens,
            dtype=source.dtype,
        )
    from mgl.retrieval.embedders.sentences import SentenceEmbedder

    return SentenceEmbedder(
        model.folder(), model_id=model_id, dims=dims, query_prefix=prefix, dtype=source.dtype
    )


def _load_judge(model: RetrievalModel, source: Source) -> Judge:
    assert model.reranking is not None
    if model.reranking.library == "cross-encoder":
        from mgl.retrieval.rerankers.cross_encoder import cross_encoder

        return cross_encoder(model.folder(), source.dtype)
    if model.reranking.library == "flag":
        from mgl.retrieval.rerankers.flag import flag_reranker

        limit = min(model.context_tokens, _FLAG_TOKENS)
        return flag_reranker(model.folder(), limit, source.dtype)
    from mgl.retrieval.rerankers.qwen3 import qwen3_reranker

    return qwen3_reranker(model.folder(), min(model.context_tokens, _MOST_TOKENS), source.dtype)


def _module(model: RetrievalModel) -> str:
    """The module that runs the model in this process."""
    embeds = model.embedding is not None and model.embedding.library == "bge-m3"
    judges = model.reranking is not None and model.reranking.library == "flag"
    return "FlagEmbedding" if embeds or judges else "sentence_transformers"


def _given(tool: GivenT | None, name: str, what: str) -> GivenT:
    if tool is None:
        raise UsageError(
            f"the reranker {name} needs {what}", hint="name one, or choose the reranker identity"
        )
    return tool
