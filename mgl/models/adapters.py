"""Adapters: small weights trained for one task, each a folder with a record of its training.

    adapter = find_adapter("turns", home())
    adapter.identity                                # 'turns@3f1c0a9d2b41'
    merge_encoder(adapter, base_folder, target)     # a model folder like the base's

An adapter lies in ``MGL_HOME/adapters/NAME`` or ships with mgl, in ``models/adapters/NAME``. Its
identity has the hash of its manifest, which has those of its files: another training under the same
name is another model. The manifest names the sources (documents and conversations) that it learnt
from: evaluation refuses those.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mgl.errors import ResourceError, UsageError, describe_fault
from mgl.models.files import compute_sha256, hold_lock, write_whole
from mgl.models.permissions import make_private_folder
from mgl.models.shipped import data_dirs, require_space, suggest

ADAPTERS: Final = "adapters"
MANIFEST: Final = "manifest.json"
RECORD: Final = "record.md"
LORA: Final = "adapter_model.safetensors"
LORA_CONFIG: Final = "adapter_config.json"
HEAD: Final = "head.safetensors"
"""What a boundary detector or a reranker makes of the encoder's states."""

AdapterKind = Literal["retriever", "reranker", "boundary", "yes-no", "builder"]

CAUSAL: Final[tuple[AdapterKind, ...]] = ("yes-no", "builder")
"""Kinds that change a language model."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_PADDING: Final = re.compile(r"\[PAD\d+\]")
_LORA_KEY: Final = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_A\.weight")


class AdapterManifest(BaseModel):
    """What an adapter is and what it learnt from.

    ``base`` is the model that it changes, by the name of its profile or its folder; the hashes are
    of that one's weights and tokenizer. They are empty where it changes none. ``sources`` are the
    ids of the documents and conversations whose questions it was trained on; ``adapted_to`` those
    whose text it was trained on, without their questions. ``questions`` has the hash of each
    question that it was trained on (``hash_question``). ``rows`` counts its data by where they came
    from, ``metrics`` has what was measured on rows that it was not trained on.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: AdapterKind
    base: str = ""
    base_sha256: str = ""
    tokenizer_sha256: str = ""
    licence: str
    sources: tuple[str, ...] = ()
    adapted_to: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    rows: Mapping[str, int] = Field(default_factory=dict)
    settings: Mapping[str, Any] = Field(default_factory=dict)
    metrics: Mapping[str, float] = Field(default_factory=dict)
    files: Mapping[str, str] = Field(description="sha256 of each file, by its name")


@dataclass(frozen=True, slots=True)
class LoraAdapter:
    name: str
    folder: Path
    manifest: AdapterManifest

    @property
    def identity(self) -> str:
        """Its name and a hash of its manifest."""
        said = self.manifest.model_dump_json()
        return f"{self.name}@{hashlib.sha256(said.encode()).hexdigest()[:12]}"

    def file(self, name: str) -> Path:
        """Return a file of it; ResourceError if its hash is not the manifest's."""
        path, known = self.folder / name, self.manifest.files.get(name)
        if known is None or not path.is_file() or compute_sha256(path) != known:
            raise ResourceError(
                f"{path} is not the file that the adapter's manifest describes",
                hint=f"train {self.name} again, or restore its folder",
            )
        return path


def hash_question(text: str) -> str:
    """Hash a question whatever its case and spaces (sha256, 12 hexadecimal digits)."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:12]


def find_adapter(name: str, home: Path, kind: AdapterKind | None = None) -> LoraAdapter:
    """Find an adapter by its name, of a ``kind`` if that is given.

    UsageError if there is none, ResourceError if its manifest cannot be read.
    """
    folders = _folders(home)
    if name not in folders:
        raise UsageError(
            f"there is no adapter called {name!r}",
            hint=f"{suggest(name, folders)}there are: {', '.join(folders) or 'none yet'}",
        )
    adapter = _read(folders[name])
    if kind not in (None, adapter.manifest.kind):
        raise UsageError(
            f"{name} is an adapter of kind {adapter.manifest.kind}, not {kind}",
            hint="`mgl models` lists the adapters",
        )
    return adapter


def list_adapters(home: Path) -> list[str]:
    """List the names of the adapters in the home and of those that ship."""
    return list(_folders(home))


def list_trained_on(source: str, home: Path) -> list[LoraAdapter]:
    """List the adapters in the home that learnt from the text of a document or conversation."""
    found = [_read(path.parent) for path in sorted((home / ADAPTERS).glob(f"*/{MANIFEST}"))]
    return [one for one in found if source in (*one.manifest.sources, *one.manifest.adapted_to)]


def remove_adapter(adapter: LoraAdapter, home: Path) -> None:
    """Remove an adapter from the home, with the models that it was merged into.

    Its manifest goes last, so that one whose removal was interrupted can still be found.
    """
    manifest = adapter.folder / MANIFEST
    files = [path for path in adapter.folder.glob("*") if path != manifest]
    for path in [*(home / "converted").glob(f"{adapter.name}@*"), *files, manifest]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(adapter.folder, ignore_errors=True)


def drop_scratch(name: str, home: Path) -> None:
    """Remove what is left of an adapter whose writing was interrupted."""
    shutil.rmtree(_find_scratch(name, home), ignore_errors=True)


def check_name(name: str) -> None:
    """Raise UsageError for a name that no adapter can have."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be an adapter's name",
            hint="use lower-case letters, digits, dots, dashes",
        )


def write_adapter(
    name: str, home: Path, manifest: Mapping[str, Any], files: Iterable[Path], record: str = ""
) -> LoraAdapter:
    """Copy files into a new adapter's folder and write their manifest, all or nothing.

    ``record`` says how it was trained. An adapter of that name is replaced. UsageError for a name
    that is no file name, ResourceError if the disk is full.
    """
    check_name(name)
    target, given = home / ADAPTERS / name, list(files)
    scratch = _find_scratch(name, home)
    require_space(home, sum(path.stat().st_size for path in given))
    shutil.rmtree(scratch, ignore_errors=True)
    make_private_folder(scratch)
    for path in given:
        shutil.copy(path, scratch / path.name)  # with its permissions
    hashes = {path.name: compute_sha256(path) for path in given}
    written = AdapterManifest.model_validate({**manifest, "files": hashes})
    write_whole(scratch / RECORD, record.encode())
    write_whole(scratch / MANIFEST, f"{written.model_dump_json(indent=1)}\n".encode())
    shutil.rmtree(target, ignore_errors=True)
    scratch.replace(target)
    return LoraAdapter(name, target, written)


def _find_scratch(name: str, home: Path) -> Path:
    return home / ADAPTERS / f".{name}.new"


def merge_encoder(adapter: LoraAdapter, base: Path, target: Path) -> Path:
    """Write the model folder of an encoder with a LoRA merged into its weights, once.

    Each weight W becomes W + (alpha / r) · B · A (Hu et al., LoRA, ICLR 2022). Returns ``target``,
    which gets its name once it is complete. ResourceError if the base is not the one that the
    adapter was trained on, or lacks a weight that the adapter changes.
    """
    if (target / "model.safetensors").is_file():
        return target
    from safetensors.numpy import load_file, save_file

    weights, manifest = base / "model.safetensors", adapter.manifest
    for path, known in (
        (weights, manifest.base_sha256),
        (base / "tokenizer.json", manifest.tokenizer_sha256),
    ):
        if known and (not path.is_file() or compute_sha256(path) != known):
            raise ResourceError(
                f"{adapter.name} was trained with another {path.name} than that in {base}",
                hint=f"fetch it with `mgl models get {manifest.base}`, or train the adapter again",
            )
    merged = load_file(weights)
    for module, change in read_lora(adapter).items():
        name = f"{module}.weight"
        if name not in merged:
            raise ResourceError(
                f"{adapter.name} changes {name}, which {base} does not have",
                hint="train the adapter again on that model",
            )
        merged[name] = merged[name] + change
    require_space(target.parent, weights.stat().st_size)
    scratch = target.with_name(f".{target.name}.new")
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(base, scratch, ignore=shutil.ignore_patterns("model.safetensors"))
    save_file(merged, scratch / "model.safetensors", metadata={"format": "pt"})
    shutil.rmtree(target, ignore_errors=True)
    scratch.replace(target)
    return target


def hash_base(weights: Path) -> dict[str, str]:
    """Hash the weights of a language model, and its vocabulary: of a GGUF file, or a model folder.

    ResourceError where one cannot be read.
    """
    files = [weights] if weights.suffix == ".gguf" else sorted(weights.glob("*.safetensors"))
    if not files:
        raise ResourceError(
            f"{weights} has no safetensors files",
            hint="give the folder of a Hugging Face model, or a GGUF file",
        )
    hashes = [compute_sha256(path) for path in files]
    whole = hashes[0] if len(hashes) == 1 else _hash(" ".join(hashes))
    return {"base_sha256": whole, "tokenizer_sha256": hash_vocabulary(weights)}


def hash_vocabulary(weights: Path) -> str:
    """Hash the tokens of a language model in the order of their ids: of a GGUF file, or of a model
    folder, alike."""
    if weights.suffix == ".gguf":
        from mgl.models.gguf import read_tokens

        tokens = read_tokens(weights)
    else:
        from tokenizers import Tokenizer

        path = weights / "tokenizer.json"
        if not path.is_file():
            raise ResourceError(
                f"{weights} has no tokenizer.json", hint="give the folder of a Hugging Face model"
            )
        known = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True)
        tokens = sorted(known, key=lambda token: known[token])
    return _hash(json.dumps([token for token in tokens if not _PADDING.fullmatch(token)]))


def check_base(adapter: LoraAdapter, name: str, weights: Path) -> None:
    """Check that an adapter changes this language model: its profile's name and its files.

    UsageError for an adapter of another kind or model, ResourceError for other files.
    """
    manifest = adapter.manifest
    if manifest.kind not in CAUSAL:
        raise UsageError(
            f"{adapter.name} is an adapter of kind {manifest.kind}, and changes no language model",
            hint=f"choose one of kind {' or '.join(CAUSAL)} (`mgl models`)",
        )
    if manifest.base != name:
        raise UsageError(
            f"{adapter.name} was trained for {manifest.base}, not for {name}",
            hint=f"use it with the model {manifest.base}",
        )
    check_tokenizer(adapter, weights)
    if hash_base(weights)["base_sha256"] != manifest.base_sha256:
        raise ResourceError(
            f"{adapter.name} was trained with other weights than {weights}",
            hint=f"fetch them with `mgl models get {manifest.base}`, or train the adapter again",
        )


def check_tokenizer(adapter: LoraAdapter, weights: Path) -> None:
    """ResourceError where an adapter was trained with other tokens than a model has."""
    if hash_vocabulary(weights) != adapter.manifest.tokenizer_sha256:
        raise ResourceError(
            f"{adapter.name} was trained with another tokenizer than that of {weights}",
            hint=f"use it with {adapter.manifest.base}, or train it again",
        )


def open_lora(name: str, folder: Path) -> tuple[str, LoraAdapter | None]:
    """The identity of a LoRA in a folder, whoever trained it: the name and a hash of its content,
    or the name alone where no LoRA is there; with it the adapter, if mgl trained it."""
    if (folder / MANIFEST).is_file():
        adapter = replace(_read(folder), name=name)
        return adapter.identity, adapter
    files = [folder / LORA_CONFIG, folder / LORA]
    if not all(path.is_file() for path in files):
        return name, None
    return f"{name}@{_hash(' '.join(map(compute_sha256, files)))[:12]}", None


def read_lora(adapter: LoraAdapter) -> dict[str, NDArray[np.float32]]:
    """What a LoRA adds to the weight of each module, by its name in the model: alpha / r · B · A.

    ResourceError where its files are not those of the manifest.
    """
    from safetensors.numpy import load_file

    config = json.loads(adapter.file(LORA_CONFIG).read_text(encoding="utf-8"))
    lora, scale = load_file(adapter.file(LORA)), np.float32(config["lora_alpha"] / config["r"])
    return {
        match[1]: scale * _grow(lora[key], lora[key.replace("lora_A", "lora_B")])
        for key in lora
        if (match := _LORA_KEY.fullmatch(key))
    }


def merge_causal(adapter: LoraAdapter, base: Path, name: str, target: Path) -> Path:
    """Write the GGUF file of a language model with an adapter merged into its weights, once.

    ``name`` is that of the model's profile. Errors as of ``check_base``, ``read_lora`` and
    ``mgl.models.gguf.merge_gguf``.
    """
    if target.is_file():
        return target
    from mgl.models.gguf import merge_gguf

    check_base(adapter, name, base)
    target.parent.mkdir(parents=True, exist_ok=True)
    with hold_lock(target.parent / ".merging"):
        return target if target.is_file() else merge_gguf(base, read_lora(adapter), target)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _grow(down: NDArray[Any], up: NDArray[Any]) -> NDArray[np.float32]:
    return up.astype(np.float32) @ down.astype(np.float32)


def _folders(home: Path) -> dict[str, Path]:
    """The adapters' folders by name, in order; the home's come before those that ship."""
    found: dict[str, Path] = {}
    for place in [home / ADAPTERS, *(each / ADAPTERS for each in data_dirs("models", home=home))]:
        for path in place.glob(f"*/{MANIFEST}"):
            found.setdefault(path.parent.name, path.parent)
    return dict(sorted(found.items()))


def _read(folder: Path) -> LoraAdapter:
    path = folder / MANIFEST
    try:
        manifest = AdapterManifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        fault = str(error)
        if isinstance(error, ValidationError):
            fault = describe_fault(dict(error.errors()[0]), "the manifest")
        raise ResourceError(
            f"the adapter's manifest {path} cannot be read: {fault}",
            hint=f"train {folder.name} again, or remove its folder",
        ) from error
    return LoraAdapter(folder.name, folder, manifest)
