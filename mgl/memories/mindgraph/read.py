"""The answer stage: a tool loop over a finished graph, then the final JSON.

Source: MindGraph §3.3, D.2, D.3. The model is given the question, the graph and its statistics,
looks up sources and subgraphs for at most ``max_rounds`` tool rounds, and answers with the nodes
it cites. Models with native tool calls use them; the others take the same steps as
schema-constrained actions. Each call is a line ``tool(arguments)`` of the trace, which reports
count. A cited node that does not exist is dropped, and the trace says so.

Where graph and prompt exceed the model's context, or leave no room for a tool's result, the graph
is shown without provenance and the answer is marked ``graph_brief``; where even that does not fit,
the graph is left to subgraph_summary and the answer is marked ``graph_exceeds_context``. Where tool
results outgrow the context, the oldest are dropped and the answer is marked
``tool_results_dropped``. Where there is no room for even the latest result, the final output is
asked for at once, and the answer is marked ``answer_forced``. Where a subgraph's report fails, its
nodes stand for it, and the answer is marked ``reports_failed``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, Field, ValidationError, WithJsonSchema, create_model

from mgl.errors import ContextOverflow
from mgl.llm.base import Message, Reply, Sampling, ToolCall
from mgl.memories.calls import answer_field, cite_parts
from mgl.memories.mindgraph.prompts import ACTIONS, ANSWER, TOO_LARGE
from mgl.memories.mindgraph.state import Graph, Node, serialise
from mgl.memories.mindgraph.tools import NATIVE_TOOLS, SHOWN_SOURCES, GraphTools
from mgl.memories.propose import StrictReply
from mgl.types import Answer, Confidence, Question

MAX_CITED = 20
DROPPED = "(this result was dropped to make room)"
RESULT = "Result of "


def graph_stats(graph: Graph, chunks: int) -> str:
    """For instance "72 nodes, 154 edges, built from 21 chunks" (D)."""
    return f"{len(graph.nodes)} nodes, {len(graph.edges)} edges, built from {chunks} chunks"


@dataclass(slots=True)
class GraphReader:
    """Answers one question from a graph that was built from so many ``chunks``.

    ``first_input_tokens`` is what its first call read.
    """

    tools: GraphTools
    question: Question
    chunks: int
    source_tokens: int
    trace: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    first_input_tokens: int = 0
    _messages: list[Message] = field(default_factory=list)
    _shows_provenance: bool = False

    async def answer(self) -> Answer:
        """Take tool rounds until the model gives its final output, ``max_rounds`` at most."""
        graph, document = self.tools.graph, self.tools.document
        self._shows_provenance = self.tools.config.graph_form == "provenance"
        shown = serialise(graph, with_provenance=self._shows_provenance)
        self._messages = [self._open(shown)]
        final = await self._take_rounds(self.tools.config.max_rounds)
        cited = self._check_cited(final.cited_nodes)
        looked_up = [node for name in self.looked_up if (node := graph.node(name)) is not None]
        passages = [span for node in looked_up for span in self.tools.passages(node)]
        parts = ((node.id, each.span) for node in cited for each in node.sources[:SHOWN_SOURCES])
        citations = cite_parts(document, parts)
        passages += [citation.span for citation in citations]
        return Answer(
            question=self.question.text,
            text=final.answer.strip(),
            confidence=final.confidence,
            citations=citations,
            trace=tuple(self.trace),
            marks=(*self.marks, *(("reports_failed",) if self.tools.report_failed else ())),
            compaction_ratio=self.first_input_tokens / self.source_tokens,
            retrieved=tuple(dict.fromkeys(span.place for span in passages)),
        )

    async def _take_rounds(self, most: int) -> _Final:
        is_native = self.tools.tools.llm.native_tools
        try:
            for _ in range(most):
                final = await (self._take_native_round() if is_native else self._take_action())
                if final is not None:
                    return final
            self.trace.append(f"reached {most} tool rounds")
        except _NoRoomError:
            self.trace.append("no room for a further tool round")
            self.marks.append("answer_forced")
        return await self._ask_final("Give your final output now.")

    def _check_cited(self, names: Sequence[str]) -> list[Node]:
        """The nodes that an answer cites, each once and ``MAX_CITED`` at most; the trace names the
        rest."""
        cited: list[Node] = []
        for name in dict.fromkeys(names):
            node = self.tools.graph.node(name)
            if node is None:
                self.trace.append(f"dropped citation of {name}: no such node")
            elif len(cited) < MAX_CITED:
                cited.append(node)
            else:
                self.trace.append(f"dropped citation of {name}: more than {MAX_CITED}")
        return cited

    def _open(self, graph_state: str) -> Message:
        prompt = ANSWER.render(
            graph_state=graph_state,
            graph_stats=graph_stats(self.tools.graph, self.chunks),
            question=self.question.text,
        )
        is_native = self.tools.tools.llm.native_tools
        return Message("user", prompt if is_native else prompt + ACTIONS.text)

    async def _take_native_round(self) -> _Final | None:
        """Run the tools that the model calls; the final output where it calls none."""
        reply = await self._complete(None)
        self._messages.append(Message("assistant", reply.text, reply.tool_calls))
        for call in reply.tool_calls:
            result = await self._run_native(call)
            self._messages.append(Message("tool", result, tool_call_id=call.id))
        return None if reply.tool_calls else await self._parse_final(reply.text)

    async def _run_native(self, call: ToolCall) -> str:
        try:
            arguments = json.loads(call.arguments or "{}")
        except json.JSONDecodeError:
            arguments = None
        if not isinstance(arguments, dict):
            self.trace.append(f"{call.name}: arguments are not a JSON object")
            return "The arguments are not a JSON object."
        return await self._run(call.name, arguments)

    async def _take_action(self) -> _Final | None:
        """One step as JSON: a tool call, or the final output."""
        reply = await self._complete(self._step_schema())
        step = reply.parsed.step
        if step.action == "answer":
            return _Final.model_validate(step.model_dump(exclude={"action"}))
        self._messages.append(Message("assistant", reply.text))
        result = await self._run(step.action, step.model_dump(exclude={"action"}))
        self._messages.append(Message("user", f"{RESULT}{step.action}:\n{result}"))
        return None

    async def _run(self, name: str, arguments: Mapping[str, Any]) -> str:
        given = (f"{key}={value!r}" for key, value in arguments.items() if value is not None)
        self.trace.append(f"{name}({', '.join(given)})")
        if name == "lookup_source":
            self.looked_up.append(str(arguments.get("node_id", "")))
        return await self.tools.call(name, arguments)

    async def _parse_final(self, text: str) -> _Final:
        """The final JSON as the model wrote it, else asked for once more under its schema."""
        start, end = text.find("{"), text.rfind("}")
        if 0 <= start < end:
            try:
                final = _Final.model_validate_json(text[start : end + 1])
            except ValidationError:
                self.trace.append("final output was not the JSON asked for")
            else:
                if not self.question.options or final.answer in self.question.options:
                    return final
                self.trace.append("the answer was none of the question's options")
        return await self._ask_final("Give your final output as the JSON asked for.")

    async def _ask_final(self, how: str) -> _Final:
        """The final output, from as much of the rounds as there is room for."""
        self._messages.append(Message("user", how))
        reply = await self._complete(self._final_schema(), is_last=True)
        return _Final.model_validate(reply.parsed.model_dump())

    async def _complete(
        self, schema: type[BaseModel] | None, *, is_last: bool = False
    ) -> Reply[Any]:
        """Make one call, with native tools if there is no schema; what does not fit is dropped.

        _NoRoomError if there is no room for the latest tool result, ContextOverflow if the last
        call does not fit with nothing but the question.
        """
        config, complete = self.tools.config, self.tools.tools.llm.complete
        sampling = Sampling(config.temperature, max_tokens=config.answer_tokens, seed=config.seed)
        reply: Reply[Any]
        while True:
            shown = self._messages
            try:
                if schema is None:
                    reply = await complete(
                        shown, tools=NATIVE_TOOLS, sampling=sampling, stage="answer"
                    )
                else:
                    reply = await complete(shown, schema, sampling=sampling, stage="answer")
            except ContextOverflow:
                if not self._make_room(is_last=is_last):
                    if is_last or len(self._messages) == 1:
                        raise
                    raise _NoRoomError from None
                continue
            self.first_input_tokens = self.first_input_tokens or reply.usage.input_tokens
            return reply

    def _make_room(self, *, is_last: bool) -> bool:
        """Drop the oldest tool result but one, or show the graph without provenance, or cut the
        only result if it is long; for the last call drop that too, then all rounds. If nothing
        else is left, leave the graph out of the first prompt. False if there was nothing to
        drop."""
        results = [
            place
            for place, message in enumerate(self._messages)
            if message.role == "tool" or message.content.startswith(RESULT)
        ]
        kept = [place for place in results if self._messages[place].content != DROPPED]
        if len(kept) > 1 or (kept and is_last):
            self._messages[kept[0]] = replace(self._messages[kept[0]], content=DROPPED)
            self._mark("tool_results_dropped")
            return True
        if self._shows_provenance and self.tools.graph.nodes:
            self._shows_provenance = False
            self._mark("graph_brief")
            self._messages[0] = self._open(serialise(self.tools.graph))
            return True
        text = self._messages[kept[0]].content if kept else ""
        if len(text) > 2 * self.tools.config.lookup_chars:
            cut = text[: len(text) // 2].rpartition("\n")[0] or text[: len(text) // 2]
            self._messages[kept[0]] = replace(self._messages[kept[0]], content=cut)
            self._mark("tool_results_cut")
            return True
        if is_last and len(self._messages) > 2:
            del self._messages[1:-1]
            return True
        if len(self._messages) > 1 + is_last or "graph_exceeds_context" in self.marks:
            return False
        if not self.tools.graph.nodes:
            return False
        self._mark("graph_exceeds_context")
        self._messages[0] = self._open(TOO_LARGE.text)
        return True

    def _mark(self, mark: str) -> None:
        if mark not in self.marks:
            self.marks.append(mark)

    def _step_schema(self) -> type[BaseModel]:
        """A final output, a node that was not looked up yet, or a summary."""
        nodes = [node.id for node in self.tools.graph.nodes]
        answer: Any = Literal["answer"]
        actions: list[Any] = [self._final_schema(action=(answer, ...))]
        if unread := tuple(node_id for node_id in nodes if node_id not in self.looked_up):
            name: Any = Literal["lookup_source"]
            ids: Any = Literal[unread]
            lookup = create_model(
                "lookup", __base__=StrictReply, action=(name, ...), node_id=(ids, ...)
            )
            actions.append(lookup)
        if nodes:
            actions.append(_Summary)
        step: Any = Union[tuple(actions)]  # noqa: UP007
        if len(actions) > 1:
            step = Annotated[step, Field(discriminator="action")]
        return create_model("step", __base__=StrictReply, step=(step, ...))

    def _final_schema(self, **fields: Any) -> type[BaseModel]:
        """The final output over the graph's nodes; ``fields`` come before its own."""
        nodes = [node.id for node in self.tools.graph.nodes]
        ids: Any = Annotated[str, WithJsonSchema({"type": "string", "enum": nodes})]
        most = Field(json_schema_extra={"maxItems": min(MAX_CITED, len(nodes))})
        answer = answer_field(self.question, 3 * self.tools.config.answer_tokens)
        return create_model(
            "final",
            __base__=StrictReply,
            **fields,
            cited_nodes=(list[ids] if nodes else list[str], most),
            answer=(answer, ...),
            confidence=(Confidence, ...),
        )


class _Summary(StrictReply):
    action: Literal["subgraph_summary"]
    mode: Literal["index", "detail"]
    subgraph_id: Annotated[int, Field(ge=0, le=999)] | None


class _NoRoomError(Exception):
    """There is no room for the latest result of a tool."""


class _Final(BaseModel):
    """The final output, in either format: as long as the reply's budget, and with as many citations
    as ``MAX_CITED``."""

    cited_nodes: list[str] = []
    answer: Annotated[str, Field(min_length=1)]
    confidence: Confidence
