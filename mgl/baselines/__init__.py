"""Baselines: what a memory has to be better than. One file each, same Protocol as a memory."""
