"""Breadth and depth of a question, as MindGraph's Appendix C defines them, put to a judge.

Source: C.1 and C.2, word for word: every label, its diagnostic and its toy example. Of each, the
last paragraph is left out: it says which labels are kept, which is no business of the judge. The
frame around them is ours (the paper prints none); the document comes first, so that questions of
one document share a prefix cache.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict

from mgl.llm.constraints import max_chars
from mgl.prompt import Prompt

__all__ = [
    "BREADTH",
    "DEPTH",
    "KEPT_BREADTH",
    "KEPT_DEPTH",
    "LABEL",
    "SUMMARY",
    "AxisReply",
    "BreadthReply",
    "DepthReply",
]

KEPT_BREADTH: Final = ("partial context reading", "global")
"""Mostly global, truly global (§4.1 and the end of C.1)."""

KEPT_DEPTH: Final = ("set aggregation", "global synthesis")

REASON_CHARACTERS: Final = 600


class AxisReply(BaseModel):
    """What a judge replies on either axis: the reason comes before the label."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, max_chars(REASON_CHARACTERS)]
    label: str


class BreadthReply(AxisReply):
    """Five levels, from least to most demanding."""

    label: Literal["local", "sparse-local", "multi-sparse", "partial context reading", "global"]


class DepthReply(AxisReply):
    """Four levels."""

    label: Literal["lookup", "multi-hop chain", "set aggregation", "global synthesis"]


BREADTH = Prompt(
    "longreason.breadth",
    source="MindGraph C.1",
    text=(
        "Breadth is a property of the *evidence support* of a question: the smallest subset of "
        "the input whose removal would change the answer. We use a five-level scale, ordered "
        "from least to most demanding.\n"
        "local. The answer lives in a single span of the input; once that span is located, no "
        "further reading is required. Locating it can still be hard in a very long document, "
        "but the inferential surface area is one span. Length-independent of the context.\n"
        "Context (excerpt). “. . . Alice is Bob’s father. . . .”\n"
        "Question. Who is Alice’s son?\n"
        "Answer. Bob.\n"
        "Why local. A single sentence licenses the answer; the rest of the document is "
        "irrelevant.\n"
        "sparse-local. A small number of supporting spans must be consulted, but they sit close"
        " together—typically within the same paragraph, scene, or short section—so a competent "
        "skim of one locality recovers all of them. The evidence is multi-span but *spatially "
        "clustered*.\n"
        "Context (excerpt, single paragraph). “Alice is Bob’s father. Bob is Carol’s father. . "
        ". .”\n"
        "Question. Who is Carol’s grandfather?\n"
        "Answer. Alice.\n"
        "Why sparse-local. Two supporting facts are required, but they appear adjacent; "
        "locating one localises the other.\n"
        "multi-sparse. Several supporting spans are required and they are scattered across "
        "distant parts of the input (e.g. different chapters, sections, or documents). The "
        "model must locate multiple non-co-located evidence pieces before any inference can "
        "begin. This is the regime that classic multi-hop QA stresses.\n"
        "Context (long document). Chapter 2 introduces “Alice is the mother of the village’s "
        "blacksmith.” Chapter 11, hundreds of pages later, names “the blacksmith’s son Daniel.”\n"
        "Question. What is Daniel’s relationship to Alice?\n"
        "Answer. Alice is Daniel’s grandmother.\n"
        "Why multi-sparse. The two facts that license the answer are far apart; both must be "
        "retrieved, but most of the document is still irrelevant.\n"
        "partial context reading. A sizable but not whole-input slice must be read "
        "coherently—an entire section, sub-document, or thematically connected region—rather "
        "than a few spans. Skimming for keywords is not sufficient; the model needs to follow "
        "the slice’s internal structure (e.g. the methods section of a paper, or one "
        "character’s chapters in a multi-POV novel).\n"
        "Context. A long scientific paper.\n"
        "Question. Which data-collection methods does the study use?\n"
        "Answer. (Whatever the Methods section reports.)\n"
        "Why partial. The answer is concentrated in one section, but that section is itself "
        "substantial and must be read in full—no single sentence captures the methods, and the "
        "rest of the paper (intro, related work, results, discussion) is largely irrelevant.\n"
        "global. The input must be understood as a whole: the answer depends on integrating "
        "evidence drawn from the full document, or on a property of the document at the "
        "document level (consistency, overall theme, set membership over the entire corpus). No"
        " proper subset of the input is sufficient.\n"
        "Context. A grammar and lexicon defining a new constructed language, distributed across"
        " an entire document.\n"
        "Question. Translate the English sentence “the bird flew over the river” into the new "
        "language.\n"
        "Answer. (A sentence whose lexicon entries and grammar rules each come from different "
        "parts of the document.)\n"
        "Why global. Almost every word and rule in the document contributes to forming a "
        "correct translation; one cannot answer without holding the whole language in working "
        "memory."
    ),
)

DEPTH = Prompt(
    "longreason.depth",
    source="MindGraph C.2",
    text=(
        "Depth is a property of the *inference chain* that connects the gathered evidence to "
        "the final answer, conditional on having the evidence already in hand. It is largely "
        "independent of breadth: an item can require deep inference over a single span (high "
        "depth, low breadth) or shallow aggregation over the whole input (low depth, high "
        "breadth).\n"
        "lookup. The answer is a verbatim or near-verbatim span of the gathered evidence. No "
        "inferential step is required beyond pointing at the right substring.\n"
        "Evidence. “Alice is Bob’s father.”\n"
        "Question. Who is Alice’s son?\n"
        "Answer. Bob.\n"
        "Why lookup. The answer can be read directly off the evidence span—no transformation, "
        "no chaining.\n"
        "multi-hop chain. A small chain of inferential steps—typically two or three—connects "
        "the evidence to the answer. Each step is itself a lookup-grade transformation, but the"
        " chain has to be assembled.\n"
        "Evidence. “Alice is Bob’s father.” “Carol is Bob’s daughter.”\n"
        "Question. Who is Carol’s grandfather?\n"
        "Answer. Alice.\n"
        "Why multi-hop chain. $father(\\cdot, Bob)=Alice$ and $daughter(\\cdot, Bob)=Carol$ must "
        "be composed via the intermediate entity Bob; the answer is one short inferential chain"
        " away.\n"
        "set aggregation. The answer is a count, sum, majority, or other aggregate over a *set "
        "of items* that must first be identified across the input. Each individual "
        "identification is shallow, but the answer requires producing a quantity or label "
        "defined over the whole set, not over any one item.\n"
        "Context. A collection of email messages, each tagged or described with a category.\n"
        "Question. Which category appears most often in the collection?\n"
        "Answer. (The mode of the per-message categories.)\n"
        "Why set aggregation. Per-email classification is shallow, but the final answer is an "
        "argmax over a set; it cannot be extracted from any single item.\n"
        "global synthesis. The answer requires combining many heterogeneous claims drawn from "
        "across the input while *weighing* evidence and *resolving* contradictions (e.g. "
        "unreliable narrators, conflicting witness statements, hypotheses to be confirmed or "
        "rejected). Unlike multi-hop chain, the graph of relevant evidence is not a short path "
        "but a web; unlike set aggregation, the items combined are not homogeneous.\n"
        "Context. A detective novel: scattered clues, witness testimony, alibis, motives, red "
        "herrings, and authorial misdirection. The text never names the murderer outright.\n"
        "Question. Who is the murderer?\n"
        "Answer. (The character whose combined motive, opportunity, and physical evidence is "
        "consistent with the full set of clues, after discounting unreliable testimony.)\n"
        "Why global synthesis. The answer depends on integrating heterogeneous evidence from "
        "many parts of the text and on resolving explicit conflicts; no chain of length two or "
        "three suffices, and no single aggregate captures it."
    ),
)

LABEL = Prompt(
    "longreason.label",
    source="ours",
    text=(
        "{kind} of a document:\n{reading}\n\n"
        "A question about this document is to be labelled by one scale.\n\n"
        "# The scale: {axis}\n{scale}\n\n"
        "# The question\n{question}\n\n# Its gold answer\n{answer}\n\n"
        "Say in one or two sentences what the answer to this question needs from the document, "
        "then give the one label of the scale that fits best. Reply with JSON only: "
        '{"reason": "…", "label": "…"}'
    ),
    variables=("kind", "reading", "axis", "scale", "question", "answer"),
)

SUMMARY = Prompt(
    "longreason.summary",
    source="ours",
    text=(
        "{text}\n\n"
        "Summarise the text above in one paragraph: who and what it is about, what happens or is "
        "claimed, in which order, and what stays open. Reply with JSON only: "
        '{"summary": "…"}'
    ),
    variables=("text",),
)
