"""What the models that run in this process share: the device, its numbers, and how they load.

They need the extra ``mgl[retrieval]``, and never ask a hub: a model is a folder on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from mgl.errors import EngineUnavailable, MglError, ResourceError, UsageError
from mgl.models.profiles import FloatName

__all__ = ["computing", "device", "loading", "number_format", "readable", "require_package"]


def require_package(module: str) -> None:
    """UsageError unless a module of ``mgl[retrieval]`` is installed; nothing is loaded."""
    if find_spec(module) is None:
        raise UsageError(
            f"models for retrieval need {module}, which is not installed",
            hint="python -m pip install 'mgl[retrieval]', or give the URL of a server",
        )


def device() -> str:
    """Where models run: a GPU if PyTorch finds one, else the CPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def number_format(asked: FloatName | None) -> FloatName:
    """The numbers that a model computes in: those asked for, else what the device is fast in."""
    import torch

    if asked is not None:
        return asked
    if torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    from mgl.models.cpu import native_float

    return native_float()


@contextmanager
def loading(folder: Path) -> Iterator[None]:
    """Load a model folder in the body, without a progress bar.

    UsageError where a package is missing, ResourceError where the folder cannot be loaded.
    """
    try:
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        yield
    except ImportError as error:
        raise UsageError(
            f"models for retrieval need {error.name or error}",
            hint="python -m pip install 'mgl[retrieval]'",
        ) from error
    except MglError:
        raise
    except Exception as error:
        raise ResourceError(
            f"the model in {folder} cannot be loaded: {_first_line(error)}",
            hint="give the folder of a whole model (configuration, tokenizer and weights)",
        ) from error


@contextmanager
def computing(model_id: str) -> Iterator[None]:
    """Run a model in the body: EngineUnavailable where its library fails."""
    try:
        yield
    except MglError:
        raise
    except Exception as error:
        raise EngineUnavailable(
            f"{model_id} failed: {_first_line(error)}",
            hint="`mgl doctor` shows the memory that is left; a smaller model needs less",
        ) from error


def readable(texts: Sequence[str]) -> list[str]:
    """The texts as tokenizers take them: halves of surrogate pairs become question marks."""
    return [text.encode("utf-8", "replace").decode() for text in texts]


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:300] or type(error).__name__
