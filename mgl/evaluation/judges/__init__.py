"""Models that judge answers, and how far they can be relied on."""
