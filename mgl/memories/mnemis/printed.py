"""The prompts that Mnemis' paper prints (Appendix E): categorising, and global selection.

They keep its wording. docs/prompts.md lists what the text extraction had damaged and how it was
repaired.
"""

from __future__ import annotations

from mgl.prompt import Prompt

__all__ = ["CATEGORIES", "CATEGORIES_SYSTEM", "GUIDANCE", "SELECTION"]

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
