"""Prompts of ReadAgent: the roles of Lee et al. 2024, §3, in our words."""

from __future__ import annotations

from mgl.prompt import Prompt

__all__ = ["GIST", "LOOK_UP", "ONE", "PAUSE", "SEVERAL"]

PAUSE = Prompt(
    "read-agent.pause",
    source="ours, in the role of Lee et al. 2024, §3.1",
    text="""Here is the next part of a long text. Numbers in angle brackets, like <1>, mark places \
where a reader may pause:

{text}

At which of these places is it most natural to pause: where a scene, a topic, an argument or a \
talk ends? Give its number.

{"pause": number}""",
    variables=("text",),
)

GIST = Prompt(
    "read-agent.gist",
    source="ours, in the role of Lee et al. 2024, §3.2",
    text="""Shorten this passage. Keep who, what, when and where in the fewest words, and explain \
nothing.

{text}

{"notes": "..."}""",
    variables=("text",),
)

LOOK_UP = Prompt(
    "read-agent.look-up",
    source="ours, in the role of Lee et al. 2024, §3.3",
    text="""This is what you remember of a text that you have read, page by page:

{pages}

Question: {question}

{asked}""",
    variables=("pages", "question", "asked"),
)

SEVERAL = Prompt(
    "read-agent.several",
    source="ours, in the role of Lee et al. 2024, §3.3",
    text="""Which pages, {most} at most, do you have to read again to answer it? Name as few as \
you need, and none if what you remember is enough.

{"pages": [numbers]}""",
    variables=("most",),
)

ONE = Prompt(
    "read-agent.one",
    source="ours, in the role of Lee et al. 2024, §3.3",
    text="""Which page do you want to read again next? You have read these again: {read}. Answer \
0 if you need no more.

{"page": number}""",
    variables=("read",),
)
