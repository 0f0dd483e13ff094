"""The prompts of the base graph: ours, since the paper prints none for this part.

What an entity and an edge is follows §2.1. Where calls about one episode have its text in common,
it stands before the task, so that a server reads it once. A fact names its sentence before it says
anything; names are looked up in the sentences by code. No prompt offers an empty list: small models
take that offer for every text.
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
    + """Which entities does the numbered text tell of? An entity is a person, organization, \
place, object, event, activity or well-defined concept. Give the name of each, or the one to four \
words of the text that stand for it, without an article. Leave out who speaks, pronouns, times, \
numbers, feelings and greetings.

{"entities": ["...", "...", ...]}""",
    variables=("recent", "episode"),
)

MORE_NAMES = Prompt(
    "mnemis.more_names",
    source=_SOURCE,
    text="""Read the numbered text again. Which entities are missing from your list? Give these \
alone, in the same form.""",
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
summary says in one or two short sentences what is known of it: what was known before, and what \
the text tells that it is, has, does or feels. tags are one to three words for its type or role. \
Say nothing that is neither in the text nor known before.

{"id": {"src": number, "summary": "...", "tags": ["..."]}, ...}""",
    variables=("episode", "entities"),
)

FACTS = Prompt(
    "mnemis.facts",
    source=_SOURCE,
    text=_OPENING
    + """Entities that it tells of:
{entities}

Which facts does the numbered text state? A fact is a relationship, action or state that joins \
two of these entities. src is the number of the sentence that states it. source and target are \
two different entities of the list. fact is one short sentence that says it in full, with names \
instead of pronouns. valid_at is when that was or began, and invalid_at is when it ended, each in \
the words of the text or as a date. Leave out valid_at where the text does not tell it, and \
invalid_at where it has not ended.

{"facts": [{"src": number, "source": "...", "target": "...", "fact": "...", "valid_at": "...", \
"invalid_at": "..."}, ...]}""",
    variables=("recent", "episode", "entities"),
)

MORE_FACTS = Prompt(
    "mnemis.more_facts",
    source=_SOURCE,
    text="""Read the numbered text again. Which facts are missing from your list? Give these \
alone, in the same form.""",
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
