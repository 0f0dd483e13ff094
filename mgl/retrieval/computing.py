"""What models that run in this process share: device, number format, loading and running.

They never ask a hub: a model is a folder on this machine. PyTorch's need the extra ``retrieval``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgl.errors import EngineUnavailable, MglError, ResourceError, UsageError, install_hint

if TYPE_CHECKING:
    from mgl.models.profiles import FloatName


def require_package(module: str) -> None:
    """Raise UsageError unless a module of the extra ``retrieval`` is installed; load nothing."""
    if find_spec(module) is None:
        raise UsageError(
            f"models for retrieval need {module}, which is not installed",
            hint=f"{install_hint('retrieval')}; or give the URL of a server",
        )


def has_gpu() -> bool:
    """Whether PyTorch is installed and finds a GPU; it is loaded only where a driver is."""
    drivers = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd")]
    return bool(drivers) and find_spec("torch") is not None and choose_device() == "cuda"


def choose_device() -> str:
    """Choose a GPU if PyTorch finds one, else the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def choose_dtype(requested: FloatName | None) -> FloatName:
    """Choose what a model computes in: as requested, else the fastest on this device."""
    import torch

    if requested is not None:
        return requested
    if torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    from mgl.models.profiles import native_float

    return native_float()


@contextmanager
def load_model(folder: Path) -> Iterator[None]:
    """Load a model folder in the body, without progress bars.

    Raises UsageError where a package is missing, ResourceError where the folder does not load.
    """
    try:
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        yield
    except ImportError as error:
        raise UsageError(
            f"models for retrieval need {error.name or error}",
            hint=install_hint("retrieval"),
        ) from error
    except MglError:
        raise
    except Exception as error:
        raise ResourceError(
            f"the model in {folder} cannot be loaded: {_first_line(error)}",
            hint="give a folder with configuration, tokenizer and weights",
        ) from error


@contextmanager
def run_model(model_id: str) -> Iterator[None]:
    """Run a model in the body; whatever its library raises becomes EngineUnavailable."""
    try:
        yield
    except MglError:
        raise
    except Exception as error:
        raise EngineUnavailable(
            f"{model_id} failed: {_first_line(error)}",
            hint="check free memory with `mgl doctor`, or choose a smaller model",
        ) from error


def read_json(file: Path, missing: Any = None) -> Any:
    """Read a JSON file of a model's folder; return ``missing``, if given, without the file.

    ResourceError where it cannot be read.
    """
    if missing is not None and not file.is_file():
        return missing
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResourceError(
            f"{file} cannot be read: {error}", hint="give the folder of a complete model"
        ) from error


def to_utf8(texts: Sequence[str]) -> list[str]:
    """Replace lone surrogates, which tokenizers refuse, by question marks."""
    return [text.encode("utf-8", "replace").decode() for text in texts]


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:300] or type(error).__name__
