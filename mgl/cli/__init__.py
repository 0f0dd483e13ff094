"""The command line: one file a command; it parses, calls the lab, and prints.

Results go to stdout and nothing else does; progress, notes and errors go to stderr. Everything
heavy is imported inside the command that needs it, so that ``mgl --help`` answers at once.
"""

from mgl.cli.app import main

__all__ = ["main"]
