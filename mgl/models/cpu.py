"""Which floating-point numbers this CPU computes in.

A CPU without instructions for bfloat16 emulates them: with 16 requests at once vLLM then gave 21
tokens a second of a 135M model where float32 gave 58 (two cores with AVX-512 and no BF16).
"""

from __future__ import annotations

from pathlib import Path

from mgl.models.profiles import FloatName

__all__ = ["native_float"]

_CPUINFO = Path("/proc/cpuinfo")
_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})  # x86, and the last of ARM


def native_float(cpuinfo: Path = _CPUINFO) -> FloatName:
    """bfloat16 where the CPU says that it has it, else float32."""
    try:
        words = cpuinfo.read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return "float32"
    return "bfloat16" if _BFLOAT16 & set(words) else "float32"
