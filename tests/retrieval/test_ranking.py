from __future__ import annotations

import pytest

from mgl.retrieval.base import Hit
from mgl.retrieval.ranking import fuse_hits, reciprocal_rank_fusion


def test_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], k=60)
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])
    hits = fuse_hits([[Hit(1, 9.0), Hit(2, 8.0)], [Hit(3, 0.3), Hit(1, 0.2)]], k=60)
    assert [hit.id for hit in hits] == [1, 3, 2]
    assert [hit.score for hit in hits] == pytest.approx([1 / 61 + 1 / 62, 1 / 61, 1 / 62])
