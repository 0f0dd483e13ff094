"""What the test's model server says about conversations, by what a prompt asks.

A topic ends with each turn that says "bye"; a topic's summary is its first line; all topics are
alike; an answer or a reply is the first memory, and an answer names it; a reply without memories is
the first message that is shown; nothing belongs into a category.
"""

from __future__ import annotations

import json
import re

from mgl.openai.formats import CHOSEN

__all__ = ["reply_about_talk"]

_NUMBERED = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)


def reply_about_talk(prompt: str, schema: str) -> str | None:
    """The reply; None where the prompt is about something else."""
    if "identify where topic changes occur" in prompt:
        least = re.search(r'"minimum": (\d+)', schema)
        first = 0 if least is None else int(least[1])
        lines = [(int(place), said) for place, said in _NUMBERED.findall(prompt)]
        ends = [place for place, said in lines[:-1] if place >= first and "bye" in said.lower()]
        return json.dumps({"boundaries": ends})
    if "Generate a structured analysis" in prompt:
        first = prompt.split("Content for analysis:\n")[1].splitlines()[0]
        return json.dumps({"keywords": first.split()[-1:], "summary": first})
    if "Determine the relationship" in prompt:
        return json.dumps({"relation": "semantic", "confidence": 0.9})
    if prompt.rstrip().endswith(" Yes or No."):
        return json.dumps({CHOSEN: "Yes" if "when" in prompt.lower() else "No"})
    if '"temporal": [indices]' in prompt:
        return json.dumps({"temporal": [], "consistent": []})
    if "<EXISTING CATEGORIES>" in prompt:
        return "[]"
    known = _NUMBERED.findall(prompt)
    said = known[0][1].rpartition(": ")[2] if known else "I know nothing of it."
    if '{"memories": [numbers]' in prompt:
        return json.dumps({"memories": [1] if known else [], "answer": said})
    if "Reply to the last message of" in prompt:
        return said
    return None
