"""The papers' numbers as data, their tables as runs, and what these cost."""
