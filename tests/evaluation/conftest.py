from __future__ import annotations

from tests.evaluation.trial import plugin, trial

__all__ = ["plugin", "trial"]
