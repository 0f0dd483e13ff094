"""The prompts of the base graph: ours, since the paper prints none for this part.

What an entity and an edge is follows §2.1. Where calls about one episode have its text in common,
it stands before the task, so that a server reads it once. An item names its sentence before it
says anything.
"""

from __future__ import annotations

from typing import Final

from mgl.prompt import Prompt

__all__ = [
    "FACTS",
    "MORE_FACTS",
    "MORE_NAMES",
    "NAMES",
    "SAME_ENTITIES",
    "SAME_FACTS",
    "SUMMARIES",
]

_SOURCE: Final = "ours, after Mnemis §2.1"
_OPENING: Final = """Before it, as context:
{recent}

The text, with its sentences numbered:
{episode}

"""

NAMES = Prompt(
    "mnemis.names",
    source=_SOURCE,
    text=_OPENING
    + """List the entities that the text tells of: each concrete person, organization, place, \
object, event or well-defined concept. src is the number of the sentence of the text that tells of \
it. name is its name, or the one to four words that stand for it, without an article. Do not list \
pronouns, times, numbers, feelings or greetings; who says "I" is listed by name. The list stays \
empty where there is nothing to list.

{"entities": [{"src": number, "name": "..."}]}""",
    variables=("recent", "episode"),
)

MORE_NAMES = Prompt(
    "mnemis.more_names",
    source=_SOURCE,
    text="""Read the numbered sentences again. List the entities that are missing from your list, \
in the same form, and none that you have listed. Where none is missing, the list stays empty.""",
)

SAME_ENTITIES = Prompt(
    "mnemis.same_entities",
    source=_SOURCE,
    text="""Names that a text mentions, each under a label and with the sentence that does. Below \
it are the known entities that it may be another name of, each under its id:

{names}

For each label, give the id of the known entity that the name is another name of. Give "new" where \
it is something else, also where it is only related to one, a part of one, or another of its kind.

{"label": "id or new", ...}""",
    variables=("names",),
)

SUMMARIES = Prompt(
    "mnemis.summaries",
    source=_SOURCE,
    text="""The text, with its sentences numbered:
{episode}

Entities that it tells of, each with what was known of it before:
{entities}

Describe each entity, under its id. src is the number of the sentence that tells most about it. \
summary says in one or two short sentences who or what it is, with what was known before and what \
the text adds. tags are one to three words for its type or role. Say nothing that is neither in \
the text nor known before.

{"id": {"src": number, "summary": "...", "tags": ["..."]}, ...}""",
    variables=("episode", "entities"),
)

FACTS = Prompt(
    "mnemis.facts",
    source=_SOURCE,
    text=_OPENING
    + """Entities that it tells of:
{entities}

List the facts that the text states: relationships, actions or states that join two of these \
entities. src is the number of the sentence that states it. source and target are two different \
entities of the list. fact is one short sentence that says it in full, with names instead of \
pronouns. valid_at is when that was or began, and invalid_at is when it ended, each in the words \
of the text ("last week", "in 2021") or as a date; leave out what the text does not tell, and \
invalid_at of what has not ended. The list stays empty where there is nothing to list.

{"facts": [{"src": number, "source": "...", "target": "...", "fact": "...", "valid_at": "...", \
"invalid_at": "..."}]}""",
    variables=("recent", "episode", "entities"),
)

MORE_FACTS = Prompt(
    "mnemis.more_facts",
    source=_SOURCE,
    text="""Read the numbered sentences again. List the facts that are missing from your list, in \
the same form, and none that you have listed. Where none is missing, the list stays empty.""",
)

SAME_FACTS = Prompt(
    "mnemis.same_facts",
    source=_SOURCE,
    text="""New facts, each under a label. Below it are the facts that were known of the same two \
entities, each under its id:

{facts}

For each label, same is the id of the known fact that says the same as the new one, or "none". \
contradicts lists the ids of the known facts that no longer hold because of the new one; it is \
empty where both can hold.

{"label": {"same": "id or none", "contradicts": ["id", ...]}, ...}""",
    variables=("facts",),
)
