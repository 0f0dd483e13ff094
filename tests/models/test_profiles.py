from __future__ import annotations

from pathlib import Path

import pytest

from mgl.models.profiles import native_float
from mgl.serving.profile import load_serving_profile


@pytest.mark.parametrize(
    ("flags", "native"),
    [
        ("fpu avx2 avx512f avx512_vnni", "float32"),
        ("fpu avx2 avx512f avx512_bf16", "bfloat16"),
        ("fpu amx_bf16 amx_tile", "bfloat16"),
        ("fp asimd bf16 i8mm", "bfloat16"),
    ],
)
def test_the_cpu_says_what_it_computes_in(tmp_path: Path, flags: str, native: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
    assert native_float(cpuinfo) == native


def test_where_nothing_is_said_nothing_is_assumed(tmp_path: Path) -> None:
    assert native_float(tmp_path / "cpuinfo") == "float32"


@pytest.mark.parametrize("native", ["bfloat16", "float32"])
def test_the_profile_for_cpus_asks_for_it(native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgl.serving.profile.native_float", lambda: native)
    assert load_serving_profile("cpu").settings_for("smollm2-135m").dtype == native
