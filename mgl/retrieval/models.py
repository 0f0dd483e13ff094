"""Which model a name stands for: a profile, an adapter, a folder here, or a server's model.

    model = find_model("BAAI/bge-m3", "embed", Source(), home())
    model.identity                          # 'bge-m3@main'

Nothing is downloaded or loaded here: ``folder()`` does that, and ``mgl.retrieval.opening`` runs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from mgl.errors import ResourceError, UsageError
from mgl.models import shipped
from mgl.models.adapters import LoraAdapter, find_adapter, list_adapters, merge_encoder
from mgl.models.fetch import Progress, fetch_weights, find_weights
from mgl.models.files import compute_sha256
from mgl.models.hub import is_complete_model
from mgl.models.profiles import EmbeddingSettings, FloatName, ModelProfile, Reranking, load_profiles
from mgl.retrieval.computing import read_json
from mgl.retrieval.encoders import is_encoder
from mgl.retrieval.multi import HEADS

_FOLDER_TOKENS = 8192  # context of a model without a profile

Wanted = Literal["embed", "rerank"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from and what it computes in; by default as its profile says.

    ``base_url`` is a server that has the model, ``weights`` a folder that takes precedence,
    ``models`` a folder of profiles. ``progress`` is called during a download.
    """

    base_url: str | None = None
    api_key: str | None = None
    weights: Path | None = None
    models: Path | None = None
    allow_hub: bool = False
    dtype: FloatName | None = None
    progress: Progress = lambda _name, _done, _total: None


@dataclass(frozen=True, slots=True)
class RetrievalModel:
    """A model for retrieval; caches are keyed by ``identity``, its name and revision.

    ``names`` are what a server may call it. ``folder`` finds or downloads its weights, ``found``
    finds them on this machine only, or gives None. ``embedding`` or ``reranking`` is set, unless
    only a server knows the model; an embedder's encoder, with or without an ``adapter``, reranks by
    late interaction. ``is_encoder``: ``mgl.retrieval.encoders`` runs it.
    """

    identity: str
    names: tuple[str, ...]
    context_tokens: int
    folder: Callable[[], Path]
    found: Callable[[], Path | None]
    embedding: EmbeddingSettings | None = None
    reranking: Reranking | None = None
    is_encoder: bool = False
    adapter: LoraAdapter | None = None


def find_model(name: str | Path, wanted: Wanted, source: Source, home: Path) -> RetrievalModel:
    """Find a model by its profile's, publisher's or adapter's name, its folder, or on a server.

    A folder's vectors may be truncated to any length: whether that is sound is the caller's to
    know. Raises UsageError where no model has that name or it serves another task, ResourceError
    where a folder holds no model.
    """
    profiles = load_profiles(source.models, home=home)
    for profile in profiles.values():
        if name in (profile.name, profile.weights.hub.repo):
            return _of_profile(profile, wanted, source, home)
    if source.base_url is not None:
        return _of_server(str(name))
    adapters = list_adapters(home)
    if name in adapters:
        return _of_adapter(str(name), wanted, source, home)
    if isinstance(name, Path) or "/" in name or "\\" in name:
        return _of_folder(Path(name), wanted)
    fitting = [profile.name for profile in profiles.values() if profile.task == wanted]
    fitting += adapters
    raise UsageError(
        f"there is no model profile {name!r}",
        hint=f"{shipped.suggest(name, fitting)}choose one of {', '.join(fitting)}, or a "
        "folder by its path (./NAME)",
    )


def _of_profile(
    profile: ModelProfile, wanted: Wanted, source: Source, home: Path
) -> RetrievalModel:
    is_untrained = wanted == "rerank" and profile.task == "embed" and _is_encoder(profile)
    if profile.task != wanted and not is_untrained:
        raise UsageError(
            f"{profile.name} is a model to {profile.task}, not to {wanted}",
            hint="list the models and their tasks with `mgl models`",
        )
    weights = profile.weights
    revision = weights.hub.revision if weights.sha256 is None else weights.sha256[:12]
    served = "" if source.base_url is None else "+openai"
    return RetrievalModel(
        identity=f"{profile.name}@{revision}{served}",
        names=(weights.hub.repo, profile.name),
        context_tokens=profile.context_tokens,
        folder=partial(
            fetch_weights,
            profile,
            home,
            explicit=source.weights,
            allow_hub=source.allow_hub,
            progress=source.progress,
        ),
        found=partial(find_weights, profile, home, source.weights),
        embedding=profile.embedding,
        reranking=profile.reranking,
        is_encoder=_is_encoder(profile),
    )


def _is_encoder(profile: ModelProfile) -> bool:
    architecture = profile.architecture
    return bool(architecture and architecture.encoder) and profile.weights.format == "safetensors"


def _of_adapter(name: str, wanted: Wanted, source: Source, home: Path) -> RetrievalModel:
    """Its base with the adapter merged into the weights, which are written once a training."""
    adapter = find_adapter(name, home, "retriever" if wanted == "embed" else "reranker")
    base = find_model(adapter.manifest.base, "embed", source, home)
    merged = home / "converted" / adapter.identity

    def find() -> Path | None:
        found = base.found()
        return None if found is None else merge_encoder(adapter, found, merged)

    return replace(
        base,
        identity=adapter.identity,
        names=(adapter.name,),
        adapter=adapter,
        folder=lambda: merge_encoder(adapter, base.folder(), merged),
        found=find,
    )


def _of_server(name: str) -> RetrievalModel:
    def refuse() -> Path:
        raise UsageError(
            f"only a server knows {name}", hint="write a profile of it into MGL_HOME/models"
        )

    return RetrievalModel(f"{name}+openai", (name,), _FOLDER_TOKENS, refuse, lambda: None)


def _of_folder(folder: Path, wanted: Wanted) -> RetrievalModel:
    if not is_complete_model(folder):
        raise ResourceError(
            f"{folder} holds no complete model",
            hint="give the folder with its config.json and weights, or a profile's name",
        )
    return RetrievalModel(
        identity=f"{folder.resolve().name}@{_digest(folder)[:12]}",
        names=(folder.resolve().name,),
        context_tokens=_FOLDER_TOKENS,
        folder=lambda: folder,
        found=lambda: folder,
        embedding=_describe_embedding(folder) if wanted == "embed" else None,
        reranking=_describe_reranking(folder) if wanted == "rerank" else None,
        is_encoder=is_encoder(folder),
    )


def _digest(folder: Path) -> str:
    """Hash the hashes of all weight files (sha256)."""
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")])
    return hashlib.sha256(" ".join(map(compute_sha256, files)).encode()).hexdigest()


def _dims(folder: Path) -> int:
    """Read the length of the vectors: of the last dense layer, the pooling, or the model."""
    steps = [step.get("path", "") for step in read_json(folder / "modules.json", [])]
    for step in reversed(steps):
        settings = read_json(folder / step / "config.json", {}) if step else {}
        for key in ("out_features", "word_embedding_dimension", "embedding_dimension"):
            if key in settings:
                return int(settings[key])
    try:
        return int(read_json(folder / "config.json")["hidden_size"])
    except KeyError as error:
        raise ResourceError(
            f"the files in {folder} do not give the length of its vectors",
            hint="write a profile of the model into MGL_HOME/models, with its dims",
        ) from error


def _describe_embedding(folder: Path) -> EmbeddingSettings:
    is_m3 = all((folder / name).is_file() for name in HEADS)
    library: Literal["sentence-transformers", "flag"] = "flag" if is_m3 else "sentence-transformers"
    return EmbeddingSettings(dims=_dims(folder), library=library, matryoshka=True)


def _describe_reranking(folder: Path) -> Reranking | None:
    """Tell a language model that says yes or no, a cross-encoder, and an encoder without a head,
    which reranks by late interaction (None)."""
    name = str((read_json(folder / "config.json").get("architectures") or [""])[0])
    if name.endswith("Model") and is_encoder(folder):
        return None
    return Reranking(library="qwen3" if name.endswith("ForCausalLM") else "cross-encoder")
