"""Scores of answers, of what was retrieved and of graphs: one name for each exact variant."""
