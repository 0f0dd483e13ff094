"""The prompts of GAM.

E.1–E.3 are the paper's own text (Appendix E); docs/prompts.md lists what the text extraction had
flattened and how it was repaired. It prints none for its indicators, nor for scoring all
candidates in one call: those are ours. Answering is ``mgl.memories.calls``.
"""

from __future__ import annotations

from mgl.prompt import Prompt

__all__ = [
    "BOUNDARIES",
    "CUES",
    "RELATION",
    "RELATIONS",
    "SUMMARY",
    "TIME_SENSITIVE",
]

RELATION = Prompt(
    "gam.relation",
    source="GAM E.1",
    text="""Determine the relationship between the following two memories.

Memory 1: {memory_1_content}
Memory 2: {memory_2_content}

Possible relations:
- "support": one memory supports the other (asymmetric)
- "contradict": one memory contradicts the other (asymmetric)
- "coreference": same entity or event (symmetric)
- "causal": one memory leads to the other (asymmetric)
- "semantic": similar meaning (symmetric)
- "unrelated": no meaningful relation

Return JSON strictly in the format:
{"relation": "...", "confidence": 0-1}""",
    variables=("memory_1_content", "memory_2_content"),
)

RELATIONS = Prompt(
    "gam.relations",
    source="ours, after GAM E.1: several candidates in one call",
    text="""Determine the relationship between a new memory and each of some earlier memories.

New memory: {new}

Earlier memories:
{candidates}

Possible relations:
- "support": one memory supports the other (asymmetric)
- "contradict": one memory contradicts the other (asymmetric)
- "coreference": same entity or event (symmetric)
- "causal": one memory leads to the other (asymmetric)
- "semantic": similar meaning (symmetric)
- "unrelated": no meaningful relation

Return JSON with one item for each earlier memory, in their order:
{"relations": [{"relation": "...", "confidence": 0-1}, ...]}""",
    variables=("new", "candidates"),
)

SUMMARY = Prompt(
    "gam.summary",
    source="GAM E.2",
    text="""Generate a structured analysis of the following content by:
1. Identifying the most salient keywords and core themes (focus on nouns, verbs, and key concepts).
2. Writing a concise summary (one to two sentences). Don't be redundant, summarize everything in \
the fewest words possible.

Format the response as a JSON object:
{
  "keywords": [
    // several specific, distinct keywords...
    // Order from most to least important...
  ],
  "summary":
    // a concise one to two sentence summary...
}

Content for analysis:
{content}""",
    variables=("content",),
)

BOUNDARIES = Prompt(
    "gam.boundaries",
    source="GAM E.3",
    text="""Please analyze the following conversation and identify where topic changes occur. \
A topic change happens when the conversation shifts to a completely different subject or theme.

Conversation:
{dialogue_text}

Identify the indices (positions) where topic boundaries occur. A boundary at index i means that \
the topic changes between utterance i and utterance i+1. Return only the boundary indices as a \
JSON array.

Return your response as a JSON object with exactly this structure:
{ "boundaries": [array_of_indices] }

Example: { "boundaries": [2, 6] }""",
    variables=("dialogue_text",),
)

CUES = Prompt(
    "gam.cues",
    source="ours: GAM §4.1 infers its cues with lightweight prompts, and prints none",
    text="""Read the utterances of a conversation, each with its index.

{dialogue_text}

Return a JSON object with two lists of indices:
- "temporal": utterances that say when something happened or will happen, or how long it took.
- "consistent": utterances that state something definite and agree with the other utterances.

{"temporal": [indices], "consistent": [indices]}""",
    variables=("dialogue_text",),
)

TIME_SENSITIVE = Prompt(
    "gam.time_sensitive",
    source="ours, as gam.cues",
    text="""Question: {question}

Does a good answer to this question depend on when something happened? Answer Yes or No.""",
    variables=("question",),
)
