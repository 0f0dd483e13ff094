"""A GGUF file as OpenVINO's own model, kept so that it is converted once.

Converting is most of what it takes to load a GGUF file. The kept model is about as large as the
file, gives the same replies, and is read by the release of OpenVINO that made it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

from mgl.models.weights.lock import exclusive

__all__ = ["converted"]

PREFIX: Final = "openvino-"
SPACE: Final = 2  # free disk that a conversion wants, in sizes of the file


def converted(genai: Any, weights: Path, folder: Path) -> Path:
    """The converted model of ``weights`` in ``folder``, made where it is not there yet.

    Those that other releases made are removed. ``weights`` itself where the disk is too full to
    keep another copy. RuntimeError of OpenVINO where it cannot read the file.
    """
    kept = folder / f"{PREFIX}{genai.__version__}"
    if kept.exists():
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < SPACE * weights.stat().st_size:
        return weights
    with exclusive(folder / ".converting", lambda: None):
        if not kept.exists():
            for old in folder.glob(f"{PREFIX}*"):
                shutil.rmtree(old)
            part = folder / f"{kept.name}.part"
            _convert(genai, weights, part)
            part.rename(kept)
    return kept


def _convert(genai: Any, weights: Path, part: Path) -> None:
    """OpenVINO saves what it converts beside the file, which a link brings to ``part``."""
    part.mkdir()
    link = part / weights.name
    link.symlink_to(weights.resolve())
    tokenizer = genai.Tokenizer(str(link), enable_save_ov_model=True)
    scheduler = genai.SchedulerConfig()
    genai.ContinuousBatchingPipeline(
        str(link), tokenizer, scheduler, "CPU", enable_save_ov_model=True
    )
    link.unlink()
