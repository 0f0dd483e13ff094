"""Engines that run a model on this machine, and those that stand in for one."""
