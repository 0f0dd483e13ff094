"""The answer stage: a tool loop over a finished graph, then the final JSON.

Source: MindGraph §3.3, D.2, D.3. The model is given the question, the graph and its statistics,
looks up sources and subgraphs for at most ``max_rounds`` tool rounds, and answers with the nodes
it cites. Models with native tool calls use them; the others take the same steps as
schema-constrained actions. Each call is a line ``tool(arguments)`` of the trace, which reports
count. A cited node that does not exist is dropped, and the trace says so.

Where graph and prompt exceed the model's context, the graph is left to subgraph_summary and the
answer is marked ``graph_exceeds_context``; where tool results outgrow it, the oldest are dropped
and the answer is marked ``tool_results_dropped``. Where a subgraph's report fails, its nodes stand
for it, and the answer is marked ``reports_failed``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from mgl.errors import ContextOverflow
from mgl.llm.base import LLM, Message, Reply, Sampling, ToolCall
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.prompts import ACTIONS, ANSWER, TOO_LARGE
from mgl.memories.mindgraph.state import Graph, serialise
from mgl.memories.mindgraph.tools import NATIVE_TOOLS, GraphTools
from mgl.types import Answer, Citation, Confidence, Document, Question

__all__ = ["answer_from_graph", "citations", "graph_stats"]

MAX_CITED = 20
DROPPED = "(this result was dropped to make room)"


@dataclass(frozen=True, slots=True)
class _Final:
    cited_nodes: tuple[str, ...]
    answer: str
    confidence: Confidence

    @classmethod
    def of(cls, reply: Any) -> _Final:
        return cls(tuple(reply.cited_nodes), reply.answer, reply.confidence)


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid")


def graph_stats(graph: Graph, chunks: int) -> str:
    """For instance "72 nodes, 154 edges, built from 21 chunks" (D)."""
    return f"{len(graph.nodes)} nodes, {len(graph.edges)} edges, built from {chunks} chunks"


def citations(document: Document, graph: Graph, node_ids: Sequence[str]) -> tuple[Citation, ...]:
    """The passages of nodes that exist, each node once, in the order given."""
    cited = []
    for node_id in dict.fromkeys(node_ids):
        node = graph.node(node_id)
        if node is not None:
            section = document.section_at(node.span.start)
            cited.append(Citation(node.id, document.name, node.span, node.quote, section))
    return tuple(cited)


async def answer_from_graph(
    llm: LLM,
    tools: GraphTools,
    question: Question,
    *,
    chunks: int,
    source_tokens: int,
) -> Answer:
    """Answer a question from a graph through the tool loop."""
    loop = _Loop(llm, tools, question, chunks)
    final = await loop.run()
    known = [node_id for node_id in final.cited_nodes if tools.graph.node(node_id) is not None]
    for unknown in [node_id for node_id in final.cited_nodes if node_id not in known]:
        loop.trace.append(f"dropped citation of {unknown}: no such node")
    return Answer(
        question=question.text,
        text=final.answer.strip(),
        confidence=final.confidence,
        citations=citations(tools.document, tools.graph, known),
        trace=tuple(loop.trace),
        marks=(*loop.marks, *(("reports_failed",) if tools.reports_failed else ())),
        compaction_ratio=loop.first_input_tokens / source_tokens,
        retrieved=_passages(tools, loop.looked_up, known),
    )


def _passages(tools: GraphTools, looked_up: Sequence[str], cited: Sequence[str]) -> tuple[str, ...]:
    """The passages that were looked up, in order, then those that cited nodes stand on."""
    nodes = [node for name in looked_up if (node := tools.graph.node(name)) is not None]
    stood_on = [node for name in cited if (node := tools.graph.node(name)) is not None]
    spans = [*map(tools.passage, nodes), *(node.span for node in stood_on)]
    return tuple(dict.fromkeys(span.place for span in spans))


@dataclass(slots=True)
class _Loop:
    llm: LLM
    tools: GraphTools
    question: Question
    chunks: int
    trace: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    first_input_tokens: int = 0
    looked_up: list[str] = field(default_factory=list)
    _messages: list[Message] = field(default_factory=list)

    async def run(self) -> _Final:
        self._messages = [self._opening(serialise(self.tools.graph))]
        take_round = self._native_round if self.llm.native_tools else self._action_round
        for _ in range(self._config.max_rounds):
            final = await take_round()
            if final is not None:
                return final
        self.trace.append(f"reached {self._config.max_rounds} tool rounds")
        self._messages.append(Message("user", "Give your final output now."))
        return await self._final()

    @property
    def _config(self) -> MindGraphConfig:
        return self.tools.config

    def _opening(self, graph_state: str) -> Message:
        prompt = ANSWER.render(
            graph_state=graph_state,
            graph_stats=graph_stats(self.tools.graph, self.chunks),
            question=self.question.text,
        )
        return Message("user", prompt if self.llm.native_tools else prompt + ACTIONS.text)

    async def _native_round(self) -> _Final | None:
        reply = await self._complete(None)
        if not reply.tool_calls:
            self._messages.append(Message("assistant", reply.text))
            return await self._read_final(reply.text)
        self._messages.append(Message("assistant", reply.text, reply.tool_calls))
        for call in reply.tool_calls:
            result = await self._call(call)
            self._messages.append(Message("tool", result, tool_call_id=call.id))
        return None

    async def _call(self, call: ToolCall) -> str:
        try:
            arguments = json.loads(call.arguments or "{}")
        except json.JSONDecodeError:
            arguments = None
        if not isinstance(arguments, dict):
            self.trace.append(f"{call.name}: arguments are not a JSON object")
            return "The arguments are not a JSON object."
        self.trace.append(f"{call.name}({_arguments(arguments)})")
        if call.name == "lookup_source":
            self.looked_up.append(str(arguments.get("node_id", "")))
        return await self.tools.call(call.name, arguments)

    async def _read_final(self, text: str) -> _Final:
        """The final JSON as the model wrote it, else asked for once more under its schema."""
        start, end = text.find("{"), text.rfind("}")
        if 0 <= start < end:
            try:
                return _Final.of(_LooseFinal.model_validate_json(text[start : end + 1]))
            except ValidationError:
                self.trace.append("final output was not the JSON asked for")
        self._messages.append(Message("user", "Give your final output as the JSON asked for."))
        return await self._final()

    async def _action_round(self) -> _Final | None:
        reply = await self._complete(self._step_schema())
        step = reply.parsed.step
        if step.action == "answer":
            return _Final.of(step)
        arguments = step.model_dump(exclude={"action"})
        if step.action == "lookup_source":
            self.looked_up.append(step.node_id)
        self.trace.append(f"{step.action}({_arguments(arguments)})")
        self._messages.append(Message("assistant", reply.text))
        result = await self.tools.call(step.action, arguments)
        self._messages.append(Message("user", f"Result of {step.action}:\n{result}"))
        return None

    async def _final(self) -> _Final:
        schema = _final_schema([node.id for node in self.tools.graph.nodes])
        reply = await self._complete(schema)
        return _Final.of(reply.parsed)

    async def _complete(self, schema: type[BaseModel] | None) -> Reply[Any]:
        config, stage = self._config, "answer"
        sampling = Sampling(config.temperature, max_tokens=config.answer_tokens, seed=config.seed)
        reply: Reply[Any]
        while True:
            shown = self._messages
            try:
                if schema is None:
                    reply = await self.llm.complete(
                        shown, tools=NATIVE_TOOLS, sampling=sampling, stage=stage
                    )
                else:
                    reply = await self.llm.complete(shown, schema, sampling=sampling, stage=stage)
            except ContextOverflow:
                if not self._make_room():
                    raise
                continue
            if not self.first_input_tokens:
                self.first_input_tokens = reply.usage.input_tokens
            return reply

    def _make_room(self) -> bool:
        if len(self._messages) == 1:
            if "graph_exceeds_context" in self.marks or not self.tools.graph.nodes:
                return False
            self.marks.append("graph_exceeds_context")
            self._messages[0] = self._opening(TOO_LARGE.text)
            return True
        for place, message in enumerate(self._messages[1:], 1):
            if self._is_result(message) and message.content != DROPPED:
                self._messages[place] = replace(message, content=DROPPED)
                if "tool_results_dropped" not in self.marks:
                    self.marks.append("tool_results_dropped")
                return True
        return False

    @staticmethod
    def _is_result(message: Message) -> bool:
        return message.role == "tool" or message.content.startswith("Result of ")

    def _step_schema(self) -> type[BaseModel]:
        nodes = [node.id for node in self.tools.graph.nodes]
        actions: list[Any] = [_final_schema(nodes, action=True)]
        unread = [node_id for node_id in nodes if node_id not in self.looked_up]
        if unread:
            ids: Any = Literal[tuple(unread)]
            name: Any = Literal["lookup_source"]
            actions.append(
                create_model("lookup", __base__=_Object, action=(name, ...), node_id=(ids, ...))
            )
        if nodes:
            actions.append(_Summary)
        union: Any = actions[0]
        for action in actions[1:]:
            union = union | action
        step: Any = union
        if len(actions) > 1:
            step = Annotated[union, Field(discriminator="action")]
        return create_model("step", __base__=_Object, step=(step, ...))


class _Summary(_Object):
    action: Literal["subgraph_summary"]
    mode: Literal["index", "detail"]
    subgraph_id: Annotated[int, Field(ge=0, le=999)] | None


class _LooseFinal(BaseModel):
    cited_nodes: list[str] = []
    answer: Annotated[str, Field(min_length=1)]
    confidence: Confidence


def _final_schema(node_ids: Sequence[str], *, action: bool = False) -> type[BaseModel]:
    ids: Any = Literal[tuple(node_ids)] if node_ids else str
    most = min(MAX_CITED, len(node_ids))
    fields: dict[str, Any] = {}
    if action:
        name: Any = Literal["answer"]
        fields["action"] = (name, ...)
    fields["cited_nodes"] = (Annotated[list[ids], Field(max_length=most)], ...)
    fields["answer"] = (Annotated[str, Field(min_length=1, max_length=800)], ...)
    fields["confidence"] = (Confidence, ...)
    return create_model("final", __base__=_Object, **fields)


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items() if value is not None)
