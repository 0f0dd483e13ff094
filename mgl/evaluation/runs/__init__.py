"""A run: every item of a benchmark put to every method once; its folder, replay and checks."""
