"""Evaluation: scoring what a memory answered. It sees memories by their Protocol alone."""
