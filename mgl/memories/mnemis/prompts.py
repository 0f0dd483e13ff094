"""Mnemis' prompts: those that the paper prints (Appendix E), and ours where it prints none.

The printed ones keep the paper's wording; docs/prompts.md lists what the text extraction had
damaged and how it was repaired. In ours, entities and edges are as §2.1 defines them. The text that
calls about one episode share stands before the task, so that a server reads it once. A fact names
its sentence before it says anything. No prompt offers an empty list: some models accept that offer
for every text.
"""

from __future__ import annotations

from typing import Final

from mgl.memories.mnemis.config import MnemisConfig
from mgl.prompt import Prompt

CATEGORIES_SYSTEM = Prompt(
    "mnemis.categories_system",
    source="Mnemis Appendix E",
    text="""You are an AI assistant specialized in semantic categorization of nodes.

INSTRUCTIONS:

You are given a list of node names, each prefixed with an index, each followed with a brief \
description of the name (e.g., 1. dog: [domestic animal]).
Your task is to:

- Group the nodes into semantically meaningful categories based on shared attributes, considering \
both inherent characteristics of the node names and the DESCRIPTIONS of the nodes, NOT relying \
solely on the DESCRIPTIONS.
All EXISTING CATEGORIES are provided for you.
  - If a node's attribute matches an existing category, it should be added under that category.
  - If a node name has attributes that do not match any existing category, create a new category \
and add it.
  - The category name MUST NOT include the word "and" as a connector.

Examples of INVALID categories:

  - "Food and Drinks"
  - "University and Courses"

Examples of VALID categories:

  - "Food"
  - "Drinks"
  - "University"
  - "Courses"
- Output each category as a dictionary entry where the key is the category name and the value is a \
list of node indexes (integers). Only refer to nodes by their indexes. Do not repeat node names.

Output format:
[
  {"category": "xx", "indexes": [0, 1, 2, 4]},
  {"category": "xxx", "indexes": [2, 3, 4]}
]
- The tag is a list of descriptors (each descriptor maximum 3 words, maximum 5 descriptors) that \
concisely captures the nature or type of the node.

Tag example:
- Entity name: "Son"
- Tag: ["Family member", "Happy kid", "Anime lover"]
- A node CAN be assigned to MULTIPLE categories at the same time.

Key points for multi-category classification:

- Each item can be assigned to multiple categories based on shared attributes.
- When multiple categories are formed for an item, select the minimal subset of features that are \
common across the grouped items.

Examples for different hierarchy levels:

Layer 1 (specific entities):

- "Microsoft Research Asia" and "Microsoft Research Shanghai" share the same parent organization \
(Microsoft) and a similar research focus (AI). They are grouped under:
  - "Microsoft Research Labs"
  - "AI-focused Research Labs"
- "Microsoft Research Asia" belongs to both "Microsoft Research Labs" and "NLP-focused Labs".

Layer 2 (category nodes from Layer 1):

- "Microsoft Research Labs" belongs to:
  - "Tech Company Labs"
  - "AI Research Organizations"
- "University AI Labs" belongs to:
  - "Academic Institutions"
  - "AI Research Organizations"

Layer 3 (higher-level abstractions):

- "Tech Company Labs" belongs to:
  - "Commercial Organizations"
  - "Research Institutions"
- "Academic Institutions" belongs to:
  - "Educational Organizations"
  - "Research Institutions"

Layer 4 (top-level concepts):

- "Research Institutions" belongs to:
  - "Knowledge Organizations"
- "Commercial Organizations" belongs to:
  - "Economic Entities"

- There must be NO leftover or ungrouped nodes. Single-member categories are allowed if necessary.
- The node name "user" and any first-person references ("I", "me") MUST be categorized into one \
category called "Speaker".""",
)

GUIDANCE = Prompt(
    "mnemis.guidance",
    source="Mnemis Appendix E",
    text="""<GUIDANCE ON CATEGORY GRANULARITY>
You are performing hierarchical semantic clustering from specific to abstract.

You are currently at Layer {layer}, where:
- Layer 1 contains the most specific, fine-grained categories.
- Higher layers should group lower-layer categories into broader, more abstract super-categories.

Example:

Layer 1:
- "Golden Retriever", "Poodle", "German Shepherd" -> "Dog breeds"
- "Persian Cat", "Siamese Cat" -> "Cat breeds"
- "Bengal Tiger", "Siberian Tiger" -> "Tiger subspecies"
- "Oak tree", "Pine tree" -> "Tree species"

Layer 2:
- "Dog breeds", "Cat breeds" -> "Pets"
- "Dog breeds", "Tiger subspecies" -> "Mammals"
- "Tiger subspecies" -> "Wild animals"
- "Tree species" -> "Trees"

Layer 3:
- "Pets", "Wild animals" -> "Animals"
- "Trees" -> "Plants"

Layer 4:
- "Animals", "Plants" -> "Living organisms"

Key points:
- Categories may belong to multiple parent categories.
- Do not merge categories that are too loosely related.

Your job at Layer {layer}:
- Merge semantically similar categories from Layer {previous_layer}.

- Each new category should reflect a shared attribute, domain, or higher-level concept.
- Multiple category assignments are allowed when justified.

Previous Layer {previous_layer} categories example:
{prev_example}
</GUIDANCE ON CATEGORY GRANULARITY>""",
    variables=("layer", "previous_layer", "prev_example"),
)

CATEGORIES = Prompt(
    "mnemis.categories",
    source="Mnemis Appendix E",
    text="""<NODE INDEXED NAMES AND DESCRIPTIONS>
{content}
</NODE INDEXED NAMES AND DESCRIPTIONS>

<EXISTING CATEGORIES>
These are names and descriptions of categories previously created. Reuse them if applicable.
{existing_categories}
</EXISTING CATEGORIES>

{guidance}

# ATTENTION
- The node name "user" and any first-person references ("I", "me") MUST be categorized into one \
category called "Speaker". If the "Speaker" category does not exist, skip this node.
- The category name MUST NOT include the word "and".

Please follow the INSTRUCTIONS and GUIDANCE carefully to ensure accurate categorization and \
meaningful hierarchical relationships.
DO NOT INCLUDE ANY INVALID CATEGORIES.""",
    variables=("content", "existing_categories", "guidance"),
)

SELECTION = Prompt(
    "mnemis.selection",
    source="Mnemis Appendix E",
    text="""You are analyzing a hierarchical knowledge graph to help answer a user query.

Select all nodes that could help answer the query. A node is helpful if it:

- Directly relates to the query;
- Covers a clearly relevant topic, concept, or category;
- Provides useful background or context;
- Contains user-specific information (e.g. interests, goals, constraints);
- Likely has sub-nodes that may be helpful.

Do not be overly strict: include nodes that might provide context or personalization, even if they \
seem partially redundant.

For each selected node:
- "name" is the node's name.
- "uuid" is the node's unique identifier.
- "get_all_children" is an boolean value. Set true only if you're confident all its sub-nodes are \
helpful.
---
User Query:
"{query}"

Available Nodes:
{nodes_info}""",
    variables=("query", "nodes_info"),
)

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
    + """Which entities do the numbered text and the context before it tell of? An entity is a \
person, organization, place, object, event, activity or well-defined concept. Give the name of \
each, or the one to four words of the text that stand for it, without an article, those of the \
numbered text first. Leave out who speaks, pronouns, times, numbers, feelings and greetings.

{"entities": ["...", "...", ...]}""",
    variables=("recent", "episode"),
)

MORE_NAMES = Prompt(
    "mnemis.more_names",
    source=_SOURCE,
    text="""Read both texts again. Which entities are missing from your list? Give these alone, \
in the same form.""",
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
summary says in short sentences all that is known of it: what was known before, and what the text \
tells that it is, has, does or feels. tags are one to five descriptors, of at most three words \
each, of its type or role. \
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
    text="""New facts, each under a label. Below it are known facts that are like it, each under \
its id. In brackets is from when to when a fact holds:

{facts}

For each label, same is the id of the known fact that says the same as the new one, or "none". \
contradicts lists the ids of the known facts that no longer hold because of the new one, such as \
where somebody lived or worked before; it is empty where both can hold.

{"label": {"same": "id or none", "contradicts": ["id", ...]}, ...}""",
    variables=("facts",),
)

DESCRIBE = Prompt(
    "mnemis.describe_category",
    source="ours, after Mnemis §2.2 and the definition of tags in Appendix E",
    text="""A category is described from the nodes that it holds.

Write a summary of one or two sentences that says what the nodes are and what they have in common, \
with the facts that matter most. Write tags: at most 5 descriptors of at most 3 words that capture \
what kind of nodes they are. Say nothing that the nodes do not say.

Answer in JSON:
{"summary": "...", "tags": ["...", "..."]}

The category: {name}
Its nodes:
{nodes}""",
    variables=("name", "nodes"),
)

GROUPING: Final = (CATEGORIES_SYSTEM, GUIDANCE, CATEGORIES, DESCRIBE)
"""What a hierarchy is built with."""


def extraction_prompts(config: MnemisConfig) -> tuple[Prompt, ...]:
    """Return the prompts that the base graph is read with."""
    reflection = (MORE_NAMES, MORE_FACTS) if config.reflect else ()
    return (NAMES, SAME_ENTITIES, SUMMARIES, FACTS, SAME_FACTS, *reflection)


def writing_prompts(config: MnemisConfig) -> tuple[Prompt, ...]:
    """Return the prompts that decide what a memory of this configuration holds.

    Every route reads the same log, so the prompts of selection and answer are not among them.
    """
    return (*extraction_prompts(config), *GROUPING)
