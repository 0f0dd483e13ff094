"""A perfect model in place of a real one: what is true of an item, and what it replies.

It knows each item's gold answer and evidence. ``ceiling.py`` scores memories with it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from zlib import crc32

from mgl.benchmarks.base import Item
from mgl.evaluation.records import Record
from mgl.evaluation.scorers.registry import score_answer
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import call_key
from mgl.llm.fakes import SchemaEngine, sample
from mgl.llm.schemas import compile_schema
from mgl.text import sentence_spans
from mgl.types import Conversation, Source

CONTEXT: Final = 131_072
TOKEN_CHARS: Final = 4
LONG: Final = 200
"""Characters of a field from which on it holds all that is picked, not one sentence."""
RECALL: Final = "evidence_"
_DECLINE: Final = re.compile(r'the answer is "([^"]+)"')
_NUMBERED: Final = re.compile(r"^\[(\d+)\] (.*?)(?=^\[\d+\] |^Question|\Z)", re.M | re.S)
_NODE: Final = re.compile(r'\{"id": "([^"]+)".*')
_NAME: Final = re.compile(r"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")


def fold(text: str) -> str:
    """The letters and digits of a text, in one case: how a prompt writes it makes no difference."""
    return re.sub(r"[\W_]+", "", text.casefold())


def sentences(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentence_spans(text, 0, len(text))]


# What is true of an item


@dataclass(frozen=True)
class Truth:
    """An item as the perfect model knows it.

    ``reply`` is what it answers, None where the right answer is to decline. ``needles`` are the
    sentences that a prompt must show; none where nothing says what the evidence is.
    """

    item: Item
    reply: str | None
    needles: tuple[str, ...]

    @classmethod
    def of(cls, item: Item, source: Source, scorers: Sequence[str]) -> Truth:
        """What is true of an item of this source."""
        reply = None if abstains(item) else find_reply(item, scorers)
        return cls(item, reply, tuple(find_needles(item, source, reply)))

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(needle) for needle in self.needles]

    def is_shown(self, folded: str) -> bool:
        """Whether a prompt, folded, shows all the evidence."""
        return all(needle in folded for needle in self._folded)

    def touches(self, text: str) -> bool:
        """Whether a text says a part of the evidence, or is a part of it."""
        said = fold(text)
        return bool(said) and any(
            needle in said or (len(said) > 12 and said in needle) for needle in self._folded
        )


def abstains(item: Item) -> bool:
    """Whether the right answer to an item is that it was not said."""
    marked = item.labels.get("abstention") == "yes" or item.labels.get("category") == "5"
    return marked or item.category == "unsaid"


def find_reply(item: Item, scorers: Sequence[str]) -> str:
    """The answer that the first scorer counts most: an option, a gold, what stands before its
    semicolon (which is all that LoCoMo's script counts of an open-domain gold), all golds, or all
    lines of its rubric. Where the item has none of them, a judge alone knows: its passage."""
    first = [name for name in scorers if not name.startswith(RECALL)][:1]
    golds = [*item.golds, *(gold.partition(";")[0] for gold in item.golds), ", ".join(item.golds)]
    told = [*golds, "\n".join(item.rubric)]
    said = item.question.options or tuple(filter(None, dict.fromkeys(told)))

    def weigh(answer: str) -> float:
        scores = score_answer(first, item, Record("", {}, answer=answer)) if first else {}
        return max((value for value in scores.values() if value is not None), default=0.0)

    return max(said, key=weigh, default=item.passage or item.question.text)


def find_needles(item: Item, source: Source, reply: str | None) -> Iterator[str]:
    """The sentences of an item's evidence, or its golds where the source says them."""
    if isinstance(source, Conversation):
        texts = {turn.id: turn.text for turn in source.turns}
        marked = [sentence for name in item.evidence for sentence in sentences(texts.get(name, ""))]
        if marked:
            yield from (sentence for sentence in marked if fold(sentence))
            return
    if reply is None or item.question.options:
        return
    told = fold(source.transcript.text if isinstance(source, Conversation) else source.text)
    yield from (gold for gold in item.golds if len(fold(gold)) > 2 and fold(gold) in told)


# The perfect model


class PerfectEngine(SchemaEngine):
    """Answers by what is true of the item at work (``truth``), and builds by what prompts say.

    ``known`` are the items of the source at work, ``saw`` whether a prompt for an answer showed the
    evidence, and ``right`` what it tells a judge.
    """

    def __init__(self, *, context_tokens: int = CONTEXT) -> None:
        super().__init__(model_id="perfect", context_tokens=context_tokens)
        self.known: Sequence[Truth] = ()
        self.truth: Truth | None = None
        self.told = ""
        self.saw = self.asked = self.cut = self.right = False

    def begin(self, truth: Truth) -> None:
        """Begin with an item."""
        self.truth = truth
        self.saw = self.asked = self.cut = False

    async def generate(self, request: Request) -> Completion:
        await asyncio.sleep(0)
        text = "\n".join(message.content for message in request.messages)
        said = self._say(request, text)
        logprobs = (-0.001,) if request.choices else ()
        used = TokenUsage(len(text) // TOKEN_CHARS, len(said) // TOKEN_CHARS)
        return Completion(said, "stop", used, logprobs=logprobs)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [-(-len(text) // TOKEN_CHARS) for text in texts]

    async def count_prompt_tokens(self, request: Request) -> int:
        return sum(2 + len(message.content) // TOKEN_CHARS for message in request.messages)

    def _say(self, request: Request, text: str) -> str:
        if request.choices:
            yes = self.truth is not None and self.truth.is_shown(fold(text))
            return request.choices[0 if yes else -1]
        schema = request.json_schema
        if schema is not None:
            value = Reply(self, schema, text, request).make(schema)
            return json.dumps(value, ensure_ascii=False)
        if self.truth is None or self.truth.item.question.text not in text:
            return " ".join(self.pick(text)[:3]) or "Nothing is said."
        if "FINAL(" in text:
            return self._work_in_python(text)
        return self.answer(text, request.sampling.max_tokens * TOKEN_CHARS)

    def answer(self, text: str, most: int) -> str:
        """The gold if the prompt shows the evidence, else what the prompt has for an answer that
        is not there; at most so many characters."""
        assert self.truth is not None
        self.asked = True
        shown = self.truth.is_shown(fold(text))
        self.saw = self.saw or shown
        found = _DECLINE.search(text)
        decline = found[1] if found else "The text does not say."
        said = decline if not shown or self.truth.reply is None else self.truth.reply
        self.cut = self.cut or len(said) > most
        return said[:most]

    def pick(self, text: str) -> list[str]:
        """The sentences of a prompt that the source says, those of evidence first."""
        folded, known = fold(text), self.known if self.truth is None else [self.truth]
        held = (each for truth in known for each in truth.needles if fold(each) in folded)
        said = (each for line in text.splitlines() for each in sentences(line) if len(each) > 12)
        return list(dict.fromkeys([*held, *(each for each in said if fold(each) in self.told)]))

    def is_evidence(self, text: str) -> bool:
        """Whether a text is of the evidence of the item at work, or of any while none is."""
        known = self.known if self.truth is None else [self.truth]
        return any(truth.touches(text) for truth in known)

    def _work_in_python(self, text: str) -> str:
        """Print the evidence, then end with the answer."""
        assert self.truth is not None
        if "```" in text.rpartition("Question")[2] or not self.truth.needles:
            return f"FINAL({self.answer(text, 10**6)})"
        looked = "\n".join(
            f"at = context.find({needle[:60]!r}); print(context[max(0, at - 80):at + 2000])"
            for needle in self.truth.needles
        )
        return f"```repl\n{looked}\n```"


class Reply:
    """Makes a value under a JSON schema from what one prompt says."""

    def __init__(
        self, engine: PerfectEngine, schema: Mapping[str, Any], text: str, request: Request
    ) -> None:
        self._engine, self._schema, self._text = engine, schema, text
        self._rng = random.Random(call_key(engine.model_id, request))
        self._picked: list[str] | None = None
        self._used = 0
        self._most = request.sampling.max_tokens * TOKEN_CHARS

    def make(self, schema: Mapping[str, Any], name: str = "") -> Any:
        """A value of a schema; ``name`` is that of the field that it is for."""
        schema = self._resolve(schema)
        own = getattr(self, f"_make_{name}", None)
        if own is not None and (made := own(schema)) is not None:
            return made
        if options := schema.get("anyOf") or schema.get("oneOf"):
            return self.make(self._choose([self._resolve(each) for each in options]), name)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                return {key: self.make(part, key) for key, part in schema["properties"].items()}
            case "array":
                return self._list(schema)
            case "boolean":
                return self._engine.right
            case "integer":
                return int(schema.get("minimum", 0))
            case "number":
                return float(schema.get("maximum", 1.0))
            case "string":
                return self._text_of(schema)
        return json.loads(sample(compile_schema(schema), self._rng, lambda _: self._next()))

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self._schema["$defs"][schema["$ref"].rpartition("/")[2]]
        return schema

    def _choose(self, options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Of several shapes the one that a perfect model takes: it judges by what is shown, and
        takes no value where it may."""
        truth = self._engine.truth
        by_case = {self._case(option): option for option in options}
        if "1" in by_case and truth is not None and truth.is_shown(fold(self._text)):
            return by_case["1"]
        return (
            by_case.get("2.2")
            or by_case.get("2.1")
            or next((option for option in options if option.get("type") == "null"), options[0])
        )

    def _case(self, option: Mapping[str, Any]) -> str:
        return str(option.get("properties", {}).get("judgement", {}).get("const", ""))

    def _list(self, schema: Mapping[str, Any]) -> list[Any]:
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        part = self._resolve(schema["items"])
        if part.get("type") == "integer":
            low = part.get("minimum", 0)
            return list(range(low, low + least))
        made: list[Any] = []
        for _ in range(min(most, max(least, 2))):
            value = self.make(part)
            if value not in made or len(made) < least:
                made.append(value)
        return made

    def _next(self) -> str:
        """The next sentence of the prompt that the source says."""
        if self._picked is None:
            self._picked = self._engine.pick(self._text)
        self._used += 1
        return self._picked[(self._used - 1) % len(self._picked)] if self._picked else "Nothing."

    def _text_of(self, schema: Mapping[str, Any]) -> str:
        if "pattern" in schema or "substring" in schema:
            made: str = json.loads(sample(compile_schema(schema), self._rng))
            return made
        most = schema.get("maxLength", 400)
        said = self._next()
        if most >= LONG:
            said = f"{said} {' '.join(each for each in self._picked or () if each != said)}"
        return said[:most].strip() or "Nothing"

    # Fields by their names

    def _make_answer(self, schema: Mapping[str, Any]) -> Any:
        if self._engine.truth is None:
            return None
        if "enum" in schema or "const" in schema:
            said = self._engine.answer(self._text, 10**6)
            allowed = schema.get("enum") or [schema["const"]]
            return said if said in allowed else allowed[0]
        return self._engine.answer(self._text, min(self._most, schema.get("maxLength", 10**6)))

    def _make_confidence(self, schema: Mapping[str, Any]) -> Any:
        return "high" if "enum" in schema else None

    def _make_memories(self, schema: Mapping[str, Any]) -> Any:
        return self._cite(schema)

    def _make_sources(self, schema: Mapping[str, Any]) -> Any:
        return self._cite(schema)

    def _cite(self, schema: Mapping[str, Any]) -> Any:
        """The numbers of the lines that hold evidence."""
        part = self._resolve(schema.get("items", {}))
        if part.get("type") != "integer":
            return [] if schema.get("maxItems") == 0 else None
        held = [int(n) for n, line in _NUMBERED.findall(self._text) if self._holds(line)]
        allowed = range(part["minimum"], part["maximum"] + 1)
        return sorted({n for n in held if n in allowed})[: schema.get("maxItems", 10)]

    def _holds(self, text: str) -> bool:
        return any(map(self._engine.is_evidence, sentences(text)))

    def _make_step(self, schema: Mapping[str, Any]) -> Any:
        """MindGraph: look nodes of the evidence up, then answer."""
        options = {
            self._resolve(each)["properties"]["action"]["const"]: self._resolve(each)
            for each in schema.get("oneOf", [schema])
        }
        truth = self._engine.truth
        if "lookup_source" in options and truth and not truth.is_shown(fold(self._text)):
            node = self._resolve(options["lookup_source"]["properties"]["node_id"])
            unread = node.get("enum") or [node["const"]]
            for found in _NODE.finditer(self._text):
                if found[1] in unread and self._holds(found[0]):
                    return {"action": "lookup_source", "node_id": found[1]}
        return self.make(options["answer"])

    def _make_cited_nodes(self, schema: Mapping[str, Any]) -> Any:
        part = self._resolve(schema["items"])
        allowed = part.get("enum", [])
        found = [one[1] for one in _NODE.finditer(self._text) if self._holds(one[0])]
        return [each for each in dict.fromkeys(found) if each in allowed][: schema["maxItems"]]

    def _make_operations(self, schema: Mapping[str, Any]) -> Any:
        """MindGraph: a claim for each sentence of evidence in the block, cited by itself."""
        options = self._resolve(schema["items"])
        shapes = [self._resolve(each) for each in options.get("oneOf", options.get("anyOf", []))]
        adding = next(s for s in shapes if s["properties"]["op"].get("const") == "add_node")
        source = self._resolve(adding["properties"]["src"])
        block = source.get("substring", "")
        made = []
        for start, end in source.get("sentences") or []:
            sentence = block[start:end].strip()
            if sentence and self._engine.is_evidence(sentence):
                name = f"n{crc32(fold(sentence).encode())}"
                said = {"op": "add_node", "id": name, "type": "claim"}
                said |= {"src": sentence[:600].strip(), "content": sentence[:400].strip()}
                made.append({key: said[key] for key in adding["properties"]})
        return made[: schema.get("maxItems", 40)]

    def _make_entities(self, schema: Mapping[str, Any]) -> Any:
        """The names that sentences hold, each with the sentence that says it."""
        part = self._resolve(schema["items"])
        if part.get("type") == "string":
            names = dict.fromkeys(
                name for each in self._engine.pick(self._text) for name in _NAME.findall(each)
            )
            return list(names)[: schema.get("maxItems", 8)]
        if part.get("type") != "object" or "src" not in part["properties"]:
            return None
        made: dict[str, Any] = {}
        for number, line in self._numbered():
            for name in _NAME.findall(line):
                said = {"src": number, "name": name[:60], "type": "concept"}
                made.setdefault(name, {**said, "description": line[:160].strip()})
        ordered = sorted(
            made.values(), key=lambda each: not self._engine.is_evidence(each["description"])
        )
        return ordered[: schema.get("maxItems", 8)]

    def _make_relations(self, schema: Mapping[str, Any]) -> Any:
        part = self._resolve(schema["items"])
        if part.get("type") != "object" or "src" not in part["properties"]:
            return None
        made = []
        for number, line in self._numbered():
            names = list(dict.fromkeys(_NAME.findall(line)))
            if len(names) > 1:
                ends = {"source": names[0][:60], "target": names[1][:60]}
                made.append({"src": number, **ends, "description": line[:160].strip()})
        return made[: schema.get("maxItems", 8)]

    def _numbered(self) -> list[tuple[int, str]]:
        text = self._text.rpartition("The text:")[2]
        return [(int(n), line.strip()) for n, line in re.findall(r"\[(\d+)\] ([^\[\n]+)", text)]

    def _make_inserted(self, _: Mapping[str, Any]) -> Any:
        """HGMem: a point over what the evidence in the retrieved chunks names."""
        shown = self._text.rpartition("[Retrieved Info]:")[2] or self._text
        picked = [each for each in self._engine.pick(shown) if self._engine.is_evidence(each)]
        picked = picked or self._engine.pick(shown)[:2]
        names = list(dict.fromkeys(name[:60] for each in picked for name in _NAME.findall(each)))
        if not picked:
            return []
        objects = [*names, "thing one", "thing two"][: max(2, min(len(names), 8))]
        return [{"objects": objects, "description": " ".join(picked)[:2000]}]

    def _make_updated(self, _: Mapping[str, Any]) -> Any:
        return []

    def _make_merges(self, _: Mapping[str, Any]) -> Any:
        return []

    def _make_boundaries(self, _: Mapping[str, Any]) -> Any:
        return []

    def _make_concern(self, schema: Mapping[str, Any]) -> Any:
        return self._question(schema)

    def _make_subquery(self, schema: Mapping[str, Any]) -> Any:
        return self._question(schema)

    def _question(self, schema: Mapping[str, Any]) -> Any:
        truth = self._engine.truth
        return None if truth is None else truth.item.question.text[: schema.get("maxLength", 200)]

    def _make_level(self, schema: Mapping[str, Any]) -> Any:
        return schema["maximum" if self._engine.right else "minimum"]

    def _make_score(self, schema: Mapping[str, Any]) -> Any:
        return schema["maximum" if self._engine.right else "minimum"]

    def _make_summary(self, schema: Mapping[str, Any]) -> Any:
        return (
            " ".join(self._engine.pick(self._text))[: schema.get("maxLength", 400)].strip() or None
        )

    def _make_same(self, schema: Mapping[str, Any]) -> Any:
        return "none" if "none" in schema.get("enum", ()) else None

    def _make_indexes(self, schema: Mapping[str, Any]) -> Any:
        part = self._resolve(schema["items"])
        return list(range(part["minimum"], part["maximum"] + 1))[: schema["maxItems"]]
