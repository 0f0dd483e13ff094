"""Weights from the Hugging Face cache and, if the user allows it, from the hub.

The cache is read by its layout, without a library: ``models--<owner>--<name>/`` holds
``refs/<revision>``, which names a commit, and ``snapshots/<commit>/`` with the files. The package
huggingface_hub is imported only to fetch, and keeps its own rules: ``HF_HOME``, ``HF_HUB_CACHE``,
``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE``.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mgl.errors import ResourceError, ResourceUnreachable
from mgl.models.profiles import HubSource, Weights, list_parts
from mgl.models.shipped import require_space

_PYTORCH = ("pytorch_model.bin", "sparse_linear.pt", "colbert_linear.pt")  # heads of bge-m3
_YES = {"1", "ON", "YES", "TRUE"}


def find_cached(source: HubSource) -> Path | None:
    """Find the file, with all others of a split one, or the complete model folder in the Hugging
    Face cache."""
    repository = cache_folder() / f"models--{source.repo.replace('/', '--')}"
    reference = repository / "refs" / source.revision
    commit = reference.read_text().strip() if reference.is_file() else source.revision
    snapshot = repository / "snapshots" / commit
    if source.file is None:
        return snapshot if is_complete_model(snapshot) else None
    complete = all((snapshot / name).is_file() for name in list_parts(source.file))
    return snapshot / source.file if complete else None


def is_complete_model(folder: Path) -> bool:
    """Whether a folder holds a configuration and all weight files that its index names."""
    if not (folder / "config.json").is_file():
        return False
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        single = ("model.safetensors", "pytorch_model.bin")
        return any((folder / name).is_file() for name in single)
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError):
        return False
    return all((folder / shard).is_file() for shard in shards)


def download(weights: Weights, report: Callable[[int, int], None]) -> Path:
    """Download from the hub into the Hugging Face cache; returns the file, the first of a split
    one, or the snapshot folder.

    Raises ResourceError if the hub refuses or the disk is too small, and ResourceUnreachable if the
    hub cannot be reached or HF_HUB_OFFLINE forbids it.
    """
    source = weights.hub
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in _YES:
        raise ResourceUnreachable(
            "HF_HUB_OFFLINE is set, so the hub was not asked",
            hint="unset HF_HUB_OFFLINE, or give the weights by their path",
        )
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    require_space(cache_folder(), weights.total_bytes or 0)
    try:
        if source.file is None:
            folder = snapshot_download(
                source.repo,
                revision=source.revision,
                tqdm_class=_make_bar(report),
                allow_patterns=[
                    *("*.json", "*.txt", "*.model", "*.jinja"),
                    *(["*.safetensors"] if weights.format == "safetensors" else _PYTORCH),
                ],
            )
            return Path(folder)
        paths: list[Path] = []
        for name in list_parts(source.file):
            before = sum(path.stat().st_size for path in paths)

            def report_part(done: int, total: int, before: int = before) -> None:
                report(before + done, weights.total_bytes or before + total)

            bar = _make_bar(report_part)
            found = hf_hub_download(source.repo, name, revision=source.revision, tqdm_class=bar)
            paths.append(Path(found))
        return paths[0]
    except LocalEntryNotFoundError as error:
        raise ResourceUnreachable(
            f"the hub cannot be reached for {source.repo}",
            hint="check the network (HF_ENDPOINT, proxy), or give the weights by their path",
        ) from error
    except HfHubHTTPError as error:
        raise ResourceError(
            f"the hub refused {source.repo}: {str(error).splitlines()[0]}",
            hint=f"see https://huggingface.co/{source.repo}; if it is gated, accept its licence "
            "there and run `hf auth login`",
        ) from error


def cache_folder() -> Path:
    """The hub's cache on this machine, whether or not it exists."""
    if configured := os.environ.get("HF_HUB_CACHE"):
        return Path(configured).expanduser()
    if configured := os.environ.get("HF_HOME"):
        return Path(configured).expanduser() / "hub"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "huggingface" / "hub"


def _make_bar(report: Callable[[int, int], None]) -> Any:
    """Make a progress bar class that prints nothing and reports bytes."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            options["file"] = io.StringIO()
            options.pop("name", None)
            super().__init__(*args, **options)

        def update(self, n: float | None = 1) -> None:
            super().update(n)
            if self.unit == "B":
                report(int(self.n), int(self.total or 0))

    return Bar
