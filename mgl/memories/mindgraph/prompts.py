"""The prompts of MindGraph.

D.1–D.4 are the paper's own text (Appendix D); docs/prompts.md lists what the text extraction had
damaged and how it was repaired. Prompts whose source is ``ours`` are not in the paper: it prints
none for subgraph reports, for a citation by sentence number, or for several questions at once.
"""

from __future__ import annotations

from mgl.prompt import Prompt

BUILD = Prompt(
    "mindgraph.build",
    source="MindGraph D.1",
    text='''You are a mind-graph builder. You read text blocks one at a time and maintain
a concept graph that captures information needed to answer the question below.

## Question to answer later
{question}

## Current graph state
{graph_state}

## New text block (block {block_idx}/{total_blocks})
"""
{block_text}
"""

## Your task
Propose updates to the graph. Output only a JSON object:

{"operations": [
  {"op": "add_node", "id": "short_id", "type": "entity|event|claim|concept|stat",
    "content": "description", "src": "exact quote from text"},
  {"op": "add_edge", "source": "id1", "target": "id2",
    "relation": "relationship", "src": "exact quote"},
  {"op": "edit_node", "id": "existing_id", "content": "updated description"},
  {"op": "delete_node", "id": "old_id"}
]}

Rules:
- Focus on information relevant to the question.
- Merge / update existing nodes when new text refines them.
- The `src` field must be an exact, verbatim substring copied from the text
  block (used to locate the source passage).
- Use readable snake_case ids (e.g. "matt_mercer", "total_nat20s").
- Output ONLY valid JSON. No commentary.''',
    variables=("question", "graph_state", "block_idx", "total_blocks", "block_text"),
)


def _by_sentence(text: str) -> str:
    """Make D.1 ask for a sentence's number instead of its words."""
    for printed, ours in (
        ('"src": "exact quote from text"', '"src": sentence_number'),
        ('"src": "exact quote"', '"src": sentence_number'),
        ('"updated description"', '"updated description",\n    "src": sentence_number'),
        ('"id": "old_id"', '"id": "old_id", "src": sentence_number'),
        (
            "- The `src` field must be an exact, verbatim substring copied from the text\n"
            "  block (used to locate the source passage).",
            "- The sentences of the block are numbered. The `src` field must be the number of\n"
            "  the sentence that says it (used to locate the source passage).",
        ),
    ):
        text = text.replace(printed, ours)
    return text


BUILD_BY_SENTENCE = Prompt(
    "mindgraph.build_by_sentence",
    source="ours, after MindGraph D.1: only how an edit cites is different",
    text=_by_sentence(BUILD.text),
    variables=BUILD.variables,
)


REPAIR_EDITS = Prompt(
    "mindgraph.repair_edits",
    source="ours",
    text="""\
These operations could not be applied, each with what is wrong with it; all others were:
{problems}

Output only a JSON object with these operations, corrected, in the same form. Leave out those that
are not needed.""",
    variables=("problems",),
)

ANSWER = Prompt(
    "mindgraph.answer",
    source="MindGraph D.2",
    text="""Answer the question using the mind graph below. Work through four phases.

## Mind Graph
{graph_state}

## Graph stats
{graph_stats}

## Question
{question}

## Tools available
You have two tools. Choose based on graph size and question type.
- `lookup_source(node_id)` -- retrieve the original passage (~1000 chars)
  around a node's source quote. Best for verifying specific facts and
  resolving ambiguity at the level of individual nodes.

- `subgraph_summary(mode, subgraph_id?)` -- get a structural overview of
  the graph organized into Leiden subgraphs. Call it with
  `mode="index"` first to see a compact list of
  `(subgraph_id, title, impact_rating, n_nodes)` for every subgraph.
  Then call with `mode="detail"` and a specific `subgraph_id` to get
  that subgraph's full executive summary and findings. Best when the
  graph is too large to survey node-by-node and you need a global map
  before drilling in.

## How to choose
Use the graph stats above to decide your strategy:
- **< 50 nodes**:: skip `subgraph_summary`; the whole graph fits in your
  attention. Go straight to Phase 1 and use `lookup_source` when you need
  to verify.
- **50 - 150 nodes**:: use judgment. If the question targets a specific
  entity you can locate by eye, `lookup_source` is enough. If the question
  requires integrating evidence across multiple regions, call
  `subgraph_summary(mode="index")` first to map the terrain.
- **> 150 nodes**:: start with `subgraph_summary(mode="index")`, pick the
  1-3 subgraphs most relevant to the question, fetch each with
  `mode="detail"`, then use `lookup_source` on specific nodes inside those
  subgraphs to verify key quotes.

## Phase 1 -- Global understanding
Before doing any lookups, build a picture of the graph as a whole:
- For small graphs, read the nodes and edges directly. Start from hub
  nodes (many edges) -- they usually represent central entities, themes,
  or events that anchor the narrative.
- For large graphs, rely on `subgraph_summary(mode="index")` and,
  selectively, `mode="detail"`. Treat the subgraph titles and ratings as
  a table of contents.
- Trace the main storylines, argument chains, or causal sequences that
  connect hubs/subgraphs.
- Build a mental summary: what is this context fundamentally about? What
  are the key relationships, conflicts, or conclusions?

## Phase 2 -- Locate relevant subgraph
Now relate the question back to the graph:
- Identify which region(s) of the graph contain the information needed to
  answer the question. This may be a single cluster of nodes, multiple
  scattered regions, or even the entire graph if the question requires
  holistic understanding.
- Use `lookup_source` on the most relevant nodes to read the original
  text and ground your understanding in primary evidence. Prioritize
  nodes that sit at the intersection of the question's key concepts.
- If the question requires integrating information across distant parts
  of the graph, look up nodes from each relevant region.

## Phase 3 -- Answer
Synthesize the evidence gathered from the relevant subgraph(s).
- Ground your answer in the looked-up source passages, not just node
  summaries.
- If information from multiple regions is needed, explain how they connect.
- Be precise and concise.

## Phase 4 -- Reflect
Before finalizing, verify your answer against the graph:

- Does your answer contradict any node or edge in the graph?
- Are there nodes with evidence that conflicts with your conclusion? If
  so, address the conflict explicitly.
- Did you overlook any region/subgraph of the graph that the question
  might depend on?
If reflection reveals a gap or conflict, do more lookups before answering.

## Final output
When ready, respond in JSON:
{"answer": "<your concise answer>", "cited_nodes": ["node_id1", ...],
 "confidence": "high|medium|low"}""",
    variables=("graph_state", "graph_stats", "question"),
)

LOOKUP_SOURCE = Prompt(
    "mindgraph.lookup_source",
    source="MindGraph D.3",
    text=(
        "Retrieve the original text passage that a mind-graph node was derived from. Returns "
        "~1000 chars of context around the source quote."
    ),
)

SUBGRAPH_SUMMARY = Prompt(
    "mindgraph.subgraph_summary",
    source="MindGraph D.3",
    text=(
        "Get a structural overview of the mind graph organized into Leiden subgraphs. Call "
        "mode='index' first to see a compact list of (subgraph_id, title, impact_rating, n_nodes) "
        "for every subgraph. Then call mode='detail' with a specific subgraph_id to get that "
        "subgraph's full executive summary and 5-10 detailed findings. Use when the graph is large "
        "and you need a global map before drilling in with lookup_source."
    ),
)

ACTIONS = Prompt(
    "mindgraph.actions",
    source="ours, for models without native tool calls",
    text="""\


## How to take a step
Reply with one JSON object that holds one step, which is either a tool call or your final output:
{"step": {"action": "lookup_source", "node_id": "<id of a node>"}}
{"step": {"action": "subgraph_summary", "mode": "index", "subgraph_id": null}}
{"step": {"action": "subgraph_summary", "mode": "detail", "subgraph_id": <number>}}
{"step": {"action": "answer", "cited_nodes": ["<id of a node>"], "answer": "<your concise answer>",
 "confidence": "high|medium|low"}}""",
)

TOO_LARGE = Prompt(
    "mindgraph.too_large",
    source="ours",
    text=(
        "(The graph is too large to be shown here. Use subgraph_summary with mode='index', then "
        "mode='detail', to find the nodes you need.)"
    ),
)

REPORT = Prompt(
    "mindgraph.report",
    source="ours",
    text="""\
Below is one subgraph of a concept graph that was read from a long text: its nodes, the edges among
them, and for each the sentence of the text that it stands on. Write a report on this subgraph for
somebody who cannot see it and has to decide whether it matters for a question.

## Subgraph
{subgraph}

## Report
- title: a few words that name what this subgraph is about, with its main names
- impact_rating: 0 to 10, how much the text as a whole would lose without this part
- summary: an executive summary in two to four sentences
- findings: {min_findings} to {max_findings} findings, each with a short headline and an explanation
  that says only what the nodes, edges and sentences above say""",
    variables=("subgraph", "min_findings", "max_findings"),
)

SEVERAL_QUESTIONS = Prompt(
    "mindgraph.several_questions",
    source="ours, for the query-distribution mode that MindGraph's Appendix A names",
    text=(
        "Any of the following questions may be asked; keep what helps with each of them.\n"
        "{questions}"
    ),
    variables=("questions",),
)

NO_QUESTION = Prompt(
    "mindgraph.no_question",
    source="ours",
    text=(
        "No question is known yet. Keep what a reader would need to answer any question about who "
        "is in this text, what happens, where, when and why, and how it ends."
    ),
)
