"""Model profiles: which weights, from where, under which licence, and how to run them.

A profile is one ``models/<name>.yaml``; ``mgl.models.fetch`` finds its weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mgl.models.shipped import Shipped, load, load_all

DEFAULT_PROFILE: Final = "qwen2.5-coder-1.5b"
"""The profile that is used if none is named: on a CPU, without a server."""

EngineName = Literal["openvino", "transformers", "openai"]
Task = Literal["generate", "embed", "rerank"]
FloatName = Literal["bfloat16", "float16", "float32"]

_SPLIT: Final = re.compile(r"(.*)-00001-of-(\d{5})\.gguf", re.DOTALL)
_CPUINFO: Final = Path("/proc/cpuinfo")
_BFLOAT16: Final = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # x86, and the last of ARM

FLOAT_BYTES: Final[Mapping[FloatName, int]] = {"bfloat16": 2, "float16": 2, "float32": 4}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HubSource(_Strict):
    """The publisher's repository on the hub."""

    repo: str
    file: str | None = Field(
        default=None,
        description="the GGUF file, or the first of one that is split; without it the whole "
        "repository (safetensors and tokenizer)",
    )
    revision: str = "main"


class Archive(_Strict):
    """A zip archive that holds a model folder; its hash pins every file in it."""

    bytes: int = Field(gt=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    folder: str = Field(description="the path of the model folder in the archive")


class RegistrySource(_Strict):
    """Python packages that carry the weights, in the order in which their parts are joined.

    The joined file is the weights file, or an ``archive`` that holds a model folder.
    """

    packages: tuple[str, ...] = Field(
        min_length=1, description="requirement pins, for instance name==1.0"
    )
    member: str | None = Field(
        default=None,
        description="glob of the one file taken from each wheel; without it the one wheel is the "
        "archive",
    )
    archive: Archive | None = None

    @model_validator(mode="after")
    def _check_archive(self) -> Self:
        if self.member is None and (self.archive is None or len(self.packages) != 1):
            raise ValueError("without a member the registry needs an archive and one package")
        return self


class WeightsPart(_Strict):
    """A further file of a split GGUF model."""

    bytes: int = Field(gt=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Weights(_Strict):
    """A GGUF file, or a folder with safetensors files or PyTorch's own ``pytorch_model.bin``.

    ``bytes`` and ``sha256`` are of the GGUF file, or of the folder's one weights file. ``more``
    pins the further files of a split GGUF, in order.
    """

    format: Literal["gguf", "safetensors", "pytorch"]
    bytes: int | None = Field(default=None, gt=0)
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")
    more: tuple[WeightsPart, ...] = ()
    hub: HubSource
    registry: RegistrySource | None = None

    @model_validator(mode="after")
    def _check_pins(self) -> Self:
        if self.registry is not None and (self.bytes is None or self.sha256 is None):
            raise ValueError("weights from a registry need bytes and sha256")
        if (self.format == "gguf") != (self.hub.file is not None):
            raise ValueError("hub.file names the GGUF file, and is left out for a folder")
        parts = list_parts(self.hub.file or "")
        if self.more and (self.sha256 is None or len(self.more) != len(parts) - 1):
            raise ValueError(f"more pins the other {len(parts) - 1} of {len(parts)} files")
        if self.registry is not None and len(parts) > 1:
            raise ValueError("a split GGUF comes from the hub alone")
        if self.registry is not None and (self.format == "gguf") != (self.registry.archive is None):
            raise ValueError("registry.archive is what a folder comes in, and a GGUF file does not")
        return self

    @property
    def filename(self) -> str:
        """The name of the weights in a profile's folder."""
        return PurePosixPath(self.hub.file).name if self.hub.file else "model"

    @property
    def total_bytes(self) -> int | None:
        """The size of all pinned files together; None if the profile does not say."""
        return None if self.bytes is None else self.bytes + sum(part.bytes for part in self.more)

    def pinned_file(self, path: Path) -> Path:
        """The file that ``sha256`` pins, for weights at ``path``."""
        if self.format == "gguf":
            return path
        return path / ("model.safetensors" if self.format == "safetensors" else "pytorch_model.bin")

    def pins(self, path: Path) -> Iterator[tuple[Path, str]]:
        """Yield each pinned file of weights at ``path`` with its sha256."""
        if self.sha256 is not None:
            yield self.pinned_file(path), self.sha256
        others = list_parts(path.name)[1:] if self.more else ()
        for name, part in zip(others, self.more, strict=False):
            yield path.with_name(name), part.sha256


class SamplingDefaults(_Strict):
    """The publisher's or the paper's sampling."""

    temperature: float = 0.0
    top_p: float = 1.0


class Architecture(_Strict):
    """What a model's memory is computed from, as in the publisher's config.json."""

    parameters: int = Field(gt=0, description="how many, embeddings included")
    dtype: FloatName = Field(description="of the weights as published, or as unpacked")
    layers: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    encoder: bool = Field(default=False, description="attends both ways, and caches nothing")
    weight_bytes: int | None = Field(
        default=None, gt=0, description="of all weights, where they are quantised"
    )

    def weights_in_memory(self, dtype: FloatName | None = None) -> int:
        """Bytes that the weights take when loaded as ``dtype`` (None: as published)."""
        return self.weight_bytes or self.parameters * FLOAT_BYTES[dtype or self.dtype]

    def cache_a_token(self, value_bytes: int) -> int:
        """Bytes of keys and values that one token adds to the cache, ``value_bytes`` a value."""
        if self.encoder:
            return 0
        return 2 * self.layers * self.kv_heads * self.head_dim * value_bytes


class ServerNeeds(_Strict):
    """Server options that the model's task needs."""

    convert: Literal["embed", "classify"] | None = None
    hf_overrides: Mapping[str, Any] = {}
    template: str | None = Field(
        default=None, description="a chat template among the serving files, by its path there"
    )


class EmbeddingSettings(_Strict):
    """How a model for ``embed`` runs in this process, and what its vectors are."""

    dims: int = Field(gt=0)
    library: Literal["sentence-transformers", "flag"] = Field(
        default="sentence-transformers",
        description="flag: FlagEmbedding, which gives token weights and token vectors, too",
    )
    matryoshka: bool = Field(
        default=False, description="trained so that the first dimensions alone are a vector too"
    )
    query_prefix: str | None = Field(
        default=None,
        description="what the publisher puts before a query; without it the model folder decides",
    )


class Reranking(_Strict):
    """How a model for ``rerank`` runs in this process."""

    library: Literal["cross-encoder", "flag", "qwen3"]


class ModelProfile(_Strict):
    """One model as mgl knows it."""

    name: str
    description: str
    licence: str
    source: str
    parameters: str
    context_tokens: int
    engine: EngineName
    task: Task = "generate"
    architecture: Architecture | None = None
    embedding: EmbeddingSettings | None = None
    reranking: Reranking | None = None
    tool_parser: str | None = Field(
        default=None, description="vLLM's parser of the tool calls that the chat template asks for"
    )
    server: ServerNeeds = ServerNeeds()
    native_tools: bool = False
    preset: Literal["paper", "small"] = "paper"
    sampling: SamplingDefaults = SamplingDefaults()
    weights: Weights

    @property
    def fetch_command(self) -> str:
        """The command that downloads the weights from where they are."""
        hub = " --allow-hub" if self.weights.registry is None else ""
        return f"mgl models get {self.name}{hub}"

    @property
    def memory_bytes(self) -> int:
        """Free memory to run it in this process: twice the weights, which are repacked on loading,
        and 1 GB."""
        return 2 * (self.weights.total_bytes or 0) + 1_000_000_000

    @property
    def served_names(self) -> tuple[str, str]:
        """The names under which a server may serve it: the publisher's, and the profile's."""
        return self.weights.hub.repo, self.name

    @model_validator(mode="after")
    def _check_task(self) -> Self:
        if self.task != "generate" and (self.tool_parser is not None or self.native_tools):
            raise ValueError(f"a model for {self.task} cannot call tools")
        if (self.task == "embed") != (self.embedding is not None):
            raise ValueError("a model for embed says its dims (embedding), and no other does")
        if (self.task == "rerank") != (self.reranking is not None):
            raise ValueError("a model for rerank says its library (reranking), and no other does")
        return self


def list_parts(name: str) -> tuple[str, ...]:
    """List the files of a GGUF model by the name, or path, of its first.

    >>> list_parts("m-00001-of-00002.gguf")
    ('m-00001-of-00002.gguf', 'm-00002-of-00002.gguf')

    Splitting names the files so (llama.cpp's ``gguf-split``); any other name is a whole model's.
    """
    split = _SPLIT.fullmatch(name)
    if split is None:
        return (name,)
    count = int(split[2])
    return tuple(f"{split[1]}-{n:05}-of-{count:05}.gguf" for n in range(1, count + 1))


_SHIPPED = Shipped("models", "model profile", "mgl models", ModelProfile.model_validate)


def load_profile(
    name: str, override: Path | None = None, *, home: Path | None = None
) -> ModelProfile:
    """Load a model profile from the first folder that has it.

        >>> load_profile("smollm2-135m").licence
        'Apache-2.0'

    Raises UsageError if there is none (close names are suggested) or its file is invalid.
    """
    return load(name, _SHIPPED, override, home=home)


def load_profiles(
    override: Path | None = None, *, home: Path | None = None
) -> dict[str, ModelProfile]:
    """Load every model profile, sorted by name; errors as in ``load_profile``."""
    return load_all(_SHIPPED, override, home=home)


def native_float(cpuinfo: Path = _CPUINFO) -> FloatName:
    """The floating-point type that this CPU computes in: bfloat16 if it has it, else float32.

    A CPU without bfloat16 emulates it: with 16 requests at once vLLM then gave 21 tokens a second
    of a 135M model, and 58 in float32 (two cores with AVX-512 and no BF16).
    """
    try:
        words = cpuinfo.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return "float32"
    return "bfloat16" if _BFLOAT16 & set(words) else "float32"
