"""The prompts of GAM, and how lines are written into them.

E.1–E.3 are the paper's own text (Appendix E); docs/prompts.md lists each repair of what the text
extraction had flattened. The paper prints none for its indicators: those are ours. Answering is in
``mgl.memories.calls``.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.prompt import Prompt, one_line


def number_lines(lines: Sequence[str]) -> str:
    """Lines with their index, from 0, in front, each on one line of its own."""
    return "\n".join(f"[{place}] {one_line(line)}" for place, line in enumerate(lines))


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
