"""How fast retrieval is, how large its indexes are and what they find, beside others."""

from mgl.retrieval.bench.measure import Figures, Latency, measure

__all__ = ["Figures", "Latency", "measure"]
