"""Scores of answers and of what was retrieved: one name for each exact variant."""
