"""The embedder or reranker that a name stands for. Opening loads nothing: weights and libraries are
loaded with the first text.

    embedder = open_embedder("all-minilm-l6-v2", home(), cache=store)
    reranker = open_reranker("similarity", home(), embedder=embedder)

A name is a model profile's, its publisher's (``BAAI/bge-m3``) or the path of a model folder; an
embedder's may end in the length to which its vectors are truncated (``qwen3-embedding-0.6b:128``),
or in the ranking that an embedder of three representations has (``bge-m3:hybrid``, ``bge-m3:all``).
An embedder of BERT's family may rerank, too: by late interaction, which compares the tokens of two
texts. With a ``Source`` of a ``base_url`` a server computes. Two rerankers are no models of their
own: ``identity`` and ``similarity`` (an embedder's cosine).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final, cast

from mgl.errors import UsageError
from mgl.models.adapters import HEAD
from mgl.retrieval.base import Embedder, Reranker
from mgl.retrieval.computing import has_gpu, require_package
from mgl.retrieval.embedders import CachedEmbedder, DeferredEmbedder, SentenceEmbedder, VectorCache
from mgl.retrieval.encoders import EncoderEmbedder, InteractionJudge, encoder_judge, is_encoder
from mgl.retrieval.models import RetrievalModel, Source, find_model
from mgl.retrieval.multi import Ranking
from mgl.retrieval.rerankers import (
    ContextReranker,
    IdentityReranker,
    Judge,
    LocalReranker,
    SimilarityReranker,
    cross_encoder,
    qwen3_reranker,
)

DEFAULT_EMBEDDER: Final = "all-minilm-l6-v2"
"""all-mpnet-base-v2 costs about five times as much; it finds 0.775 of LoCoMo's evidence, this one
0.750 (development conversations)."""

SIMILARITY: Final = "similarity"
"""The reranker that goes by the embedder's cosine."""

DEFAULT_RERANKER: Final = "all-minilm-l6-v2"
"""By late interaction: in GAM's preset small it finds more of LoCoMo's evidence than no reranker
does, and in the paper's reading far more than the cosine (docs/results.md)."""

UNTRAINED: Final = (15.1, -11.7)
"""Slope and offset of late interaction by an encoder that no adapter changes: fitted for
all-minilm-l6-v2 as ``mgl.retrieval.rerankers.FITTED`` was, over the 30 turns that match best."""

_CUT: Final = re.compile(r"(.+):([0-9]+)")
_RANKED: Final = re.compile(r"(.+):(dense|hybrid|all)")
_PAIR_TOKENS = 1024  # as in bge-reranker's published measurements
_MOST_TOKENS = 8192


def open_embedder(
    name: str | Path,
    home: Path,
    *,
    dims: int | None = None,
    source: Source | None = None,
    cache: VectorCache | None = None,
) -> Embedder:
    """Open an embedder by name; with a ``cache``, such as a ``Store``, it embeds each text once.

    ``dims``, or those that the name ends in, truncate its vectors, where the model was trained for
    that. A name that ends in a ranking needs a model that FlagEmbedding runs here: servers give
    dense vectors alone. Raises UsageError where the name is unknown, the dims or the ranking cannot
    be had, or the model needs the extra ``retrieval``, and ResourceError where a folder holds
    no model.
    """
    source = source or Source()
    ranking: Ranking = "dense"
    if isinstance(name, str) and (ranked := _RANKED.fullmatch(name)):
        name, ranking = ranked[1], cast(Ranking, ranked[2])
    if dims is None and isinstance(name, str) and (cut := _CUT.fullmatch(name)):
        name, dims = cut[1], int(cut[2])
    model = find_model(name, "embed", source, home)
    size, model_id = _dims(name, model, dims), model.identity
    if model.embedding is not None and size < model.embedding.dims:
        model_id += f":{size}"
    if ranking != "dense":
        _require_representations(model, source, ranking)
        model_id += f":{ranking}"
    if source.base_url is None:
        _require_library(model, source)
    start = partial(_start_embedder, model, model_id, size, source, ranking)
    embedder = DeferredEmbedder(start, model_id=model_id, dims=size, ranking=ranking)
    return embedder if cache is None else CachedEmbedder(embedder, cache)


def open_reranker(
    name: str | Path,
    home: Path,
    *,
    source: Source | None = None,
    embedder: Embedder | None = None,
) -> Reranker:
    """Open a reranker by name; errors as of ``open_embedder``.

    ``similarity`` needs the ``embedder``, which stays the caller's.
    """
    source = source or Source()
    if name == "identity":
        return IdentityReranker()
    if name == SIMILARITY:
        if embedder is None:
            raise UsageError(
                f"the reranker {name} needs an embedding model",
                hint="name one, or choose the reranker identity",
            )
        return SimilarityReranker(embedder)
    model = find_model(name, "rerank", source, home)
    if source.base_url is not None:
        from mgl.retrieval.servers import ServerReranker

        return ServerReranker(
            source.base_url, names=model.names, model_id=model.identity, api_key=source.api_key
        )
    if model.reranking is None:
        name = f"{model.identity} by late interaction" if model.adapter is None else model.identity
        return ContextReranker(partial(_load_interaction, model), model_id=name)
    _require_library(model, source)
    return LocalReranker(partial(_load_judge, model, source), model_id=model.identity)


def _runs_here(model: RetrievalModel, source: Source) -> bool:
    """Whether OpenVINO runs it: an encoder, in float32, on a machine whose GPU nobody can use."""
    return model.is_encoder and source.dtype in (None, "float32") and not has_gpu()


def _require_library(model: RetrievalModel, source: Source) -> None:
    if _is_flag(model):
        require_package("FlagEmbedding")
    elif not _runs_here(model, source):
        require_package("sentence_transformers")


def _is_flag(model: RetrievalModel) -> bool:
    embeds = model.embedding is not None and model.embedding.library == "flag"
    return embeds or (model.reranking is not None and model.reranking.library == "flag")


def _require_representations(model: RetrievalModel, source: Source, ranking: Ranking) -> None:
    if source.base_url is not None or not _is_flag(model):
        raise UsageError(
            f"{model.identity} cannot rank as {ranking}: it gives dense vectors alone"
            + (" behind a server" if _is_flag(model) else ""),
            hint="take bge-m3 in this process, or leave out the ranking",
        )


def _dims(name: str | Path, model: RetrievalModel, asked: int | None) -> int:
    """Choose the length of the vectors; UsageError where the model has no such vectors."""
    embedding = model.embedding
    if embedding is None:
        if asked is None:
            raise UsageError(
                f"the length of the vectors of {name} is not known",
                hint="append the length (NAME:DIMS), or write a profile of it into MGL_HOME/models",
            )
        return asked
    if asked is None or asked == embedding.dims:
        return embedding.dims
    if not 0 < asked < embedding.dims:
        raise UsageError(
            f"{name} has vectors of {embedding.dims} numbers, not {asked}",
            hint=f"ask for {embedding.dims} or fewer",
        )
    if not embedding.matryoshka:
        raise UsageError(
            f"vectors of {name} cannot be truncated to {asked} numbers",
            hint="only models trained for that can, for instance qwen3-embedding-0.6b",
        )
    return asked


def _start_embedder(
    model: RetrievalModel, model_id: str, dims: int, source: Source, ranking: Ranking
) -> Embedder:
    prefix = model.embedding.query_prefix if model.embedding else ""
    if source.base_url is None:
        folder = model.folder()
        if _is_flag(model):
            from mgl.retrieval.flag import FlagEmbedder

            return FlagEmbedder(
                folder, model_id=model_id, dims=dims, ranking=ranking, dtype=source.dtype
            )
        if _runs_here(model, source) and is_encoder(folder):
            return EncoderEmbedder(folder, model_id=model_id, dims=dims, query_prefix=prefix)
        return SentenceEmbedder(
            folder, model_id=model_id, dims=dims, query_prefix=prefix, dtype=source.dtype
        )
    from mgl.retrieval.servers import ServerEmbedder

    return ServerEmbedder(
        source.base_url,
        names=model.names,
        model_id=model_id,
        dims=dims,
        query_prefix=prefix or "",
        api_key=source.api_key,
    )


def _load_interaction(model: RetrievalModel) -> Judge:
    from safetensors.numpy import load_file

    slope, offset = UNTRAINED
    if model.adapter is not None:
        head = load_file(model.adapter.file(HEAD))
        slope, offset = (float(head[name][0]) for name in ("slope", "offset"))
    return InteractionJudge(model.folder(), _PAIR_TOKENS, slope, offset)


def _load_judge(model: RetrievalModel, source: Source) -> Judge:
    assert model.reranking is not None
    if _is_flag(model):
        from mgl.retrieval.flag import flag_reranker

        return flag_reranker(model.folder(), _PAIR_TOKENS, source.dtype)
    if model.reranking.library == "cross-encoder":
        if _runs_here(model, source) and is_encoder(model.folder()):
            return encoder_judge(model.folder(), _PAIR_TOKENS)
        return cross_encoder(model.folder(), _PAIR_TOKENS, source.dtype)
    return qwen3_reranker(model.folder(), min(model.context_tokens, _MOST_TOKENS), source.dtype)
