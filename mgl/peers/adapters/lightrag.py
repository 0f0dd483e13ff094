"""LightRAG (Guo et al. 2024): an entity graph and vectors over the chunks that it is given.

Chunks come cut, so that each has its place in the source. LightRAG's own cache is off; what it
budgets in tokens is counted here as four characters each, since it has no tokenizer of the model.
"""

import logging
import re
from typing import Any

import numpy as np
from lightrag import LightRAG, QueryParam
from lightrag.utils import EmbeddingFunc, Tokenizer
from openai import AsyncOpenAI

MALFORMED = re.compile(r"entity|relation|field|format|extract", re.I)
PIECE = 4
SEPARATOR = "<SEP>"


class Pieces:
    """Counts four characters as a token, and gives them back."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = []

    def __deepcopy__(self, memo: Any) -> "Pieces":
        return self  # LightRAG copies its settings, and tokens are numbered in one place

    def encode(self, content: str) -> list[int]:
        pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]
        for piece in pieces:
            if piece not in self._ids:
                self._ids[piece] = len(self._pieces)
                self._pieces.append(piece)
        return [self._ids[piece] for piece in pieces]

    def decode(self, tokens: list[int]) -> str:
        return "".join(self._pieces[token] for token in tokens)


class Warnings(logging.Handler):
    """Counts what LightRAG says that it could not use of a model's reply."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.malformed = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.malformed += bool(MALFORMED.search(record.getMessage()))


class LightRagAdapter:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._api = AsyncOpenAI(
            base_url=settings["base_url"], api_key=settings["key"], max_retries=0, timeout=None
        )
        self._units: list[dict[str, Any]] = []
        self._warnings = Warnings()
        logging.getLogger("lightrag").addHandler(self._warnings)
        self._rag = LightRAG(
            working_dir=settings["folder"],
            llm_model_func=self._ask,
            llm_model_max_async=settings["in_flight"],
            max_parallel_insert=1,
            tokenizer=Tokenizer("pieces", Pieces()),
            embedding_func=EmbeddingFunc(
                embedding_dim=settings["dims"], max_token_size=8192, func=self._embed
            ),
            embedding_func_max_async=1,
            entity_extract_max_gleaning=settings["gleanings"],
            enable_llm_cache=False,
            enable_llm_cache_for_entity_extract=False,
            chunking_func=self._cut,
            default_llm_timeout=10**6,
            default_embedding_timeout=10**6,
        )

    def __deepcopy__(self, memo: Any) -> "LightRagAdapter":
        return self  # LightRAG copies its settings, these methods among them

    async def start(self) -> None:
        await self._rag.initialize_storages()

    async def read(self, units: list[dict[str, Any]]) -> None:
        """Take all chunks at once: they are one document."""
        self._units += units
        await self._rag.ainsert("\n".join(unit["text"] for unit in units), file_paths=["source"])

    async def finish(self) -> dict[str, int]:
        graph = self._rag.chunk_entity_relation_graph
        nodes, edges = await graph.get_all_nodes(), await graph.get_all_edges()
        held = {chunk for node in nodes for chunk in node.get("source_id", "").split(SEPARATOR)}
        return {
            "chunks": len(self._units),
            "entities": len(nodes),
            "relations": len(edges),
            "chunks_without_entities": len(self._units) - len(held - {""}),
            "malformed": self._warnings.malformed,
        }

    async def graph(self) -> dict[str, list[dict[str, Any]]]:
        """Entities and relations, each with the places of the chunks that it is from."""
        graph = self._rag.chunk_entity_relation_graph
        nodes, edges = await graph.get_all_nodes(), await graph.get_all_edges()
        named = [str(each.get("source_id", "")).split(SEPARATOR) for each in (*nodes, *edges)]
        units = await self._find_units({chunk for chunks in named for chunk in chunks if chunk})
        entities = [
            {
                "name": each.get("entity_id") or each["id"],
                "type": each.get("entity_type", "unknown"),
            }
            for each in nodes
        ]
        relations = [{"source": each["source"], "target": each["target"]} for each in edges]
        for made, each, chunks in zip(
            [*entities, *relations], [*nodes, *edges], named, strict=True
        ):
            made["description"] = str(each.get("description", "")).replace(SEPARATOR, " ")
            made["units"] = sorted({units[chunk] for chunk in chunks if chunk in units})
        return {"entities": entities, "relations": relations}

    async def retrieve(self, question: str) -> list[dict[str, Any]]:
        """Entities, relations and chunks, in LightRAG's order; each with the chunks it is from."""
        found = await self._rag.aquery_data(question, param=self._param())
        data = found.get("data") or {}
        entities, relations = data.get("entities", []), data.get("relationships", [])
        rows = [
            (f"{each['entity_name']} ({each['entity_type']}): {each['description']}", each)
            for each in entities
        ]
        rows += [
            (f"{each['src_id']} - {each['tgt_id']}: {each['description']}", each)
            for each in relations
        ]
        rows += (
            [(each["content"], {"source_id": each["chunk_id"]}) for each in data["chunks"]]
            if ("chunks" in data)
            else []
        )
        named = [str(each.get("source_id", "")).split(SEPARATOR) for _, each in rows]
        units = await self._find_units({chunk for chunks in named for chunk in chunks if chunk})
        kinds = ["entity"] * len(entities) + ["relation"] * len(relations)
        kinds += ["chunk"] * (len(rows) - len(kinds))
        return [
            {
                "text": text.replace(SEPARATOR, " "),
                "kind": kind,
                "units": sorted({units[chunk] for chunk in chunks if chunk in units}),
            }
            for (text, _), kind, chunks in zip(rows, kinds, named, strict=True)
        ]

    async def answer(self, question: str) -> dict[str, Any]:
        said = await self._rag.aquery(question, param=self._param())
        return {"text": str(said or ""), "trace": []}

    def _param(self) -> QueryParam:
        settings = self._settings
        return QueryParam(
            mode=settings["search"],
            top_k=settings["k"],
            chunk_top_k=settings["chunks"],
            max_entity_tokens=settings["entity_tokens"],
            max_relation_tokens=settings["relation_tokens"],
            max_total_tokens=settings["total_tokens"],
            response_type="Single Paragraph",
            enable_rerank=False,
        )

    def _cut(self, *_: Any) -> list[dict[str, Any]]:
        return [
            {"tokens": unit["tokens"], "content": unit["text"], "chunk_order_index": place}
            for place, unit in enumerate(self._units)
        ]

    async def _find_units(self, chunks: set[str]) -> dict[str, int]:
        """The unit of each of LightRAG's chunks, by its text."""
        places = {unit["text"].strip(): unit["place"] for unit in self._units}
        ids = sorted(chunks)
        kept = await self._rag.text_chunks.get_by_ids(ids)
        texts = {name: row["content"].strip() for name, row in zip(ids, kept, strict=True) if row}
        return {name: places[text] for name, text in texts.items() if text in places}

    async def _ask(
        self,
        prompt: str,
        system_prompt: str | None = None,
        history_messages: list[dict[str, str]] | None = None,
        response_format: dict[str, Any] | None = None,
        **_: Any,
    ) -> str:
        messages = [{"role": "system", "content": system_prompt}] if system_prompt else []
        messages += [*(history_messages or []), {"role": "user", "content": prompt}]
        more = {"response_format": response_format} if response_format else {}
        said = await self._api.chat.completions.create(
            model=self._settings["model"], messages=messages, temperature=0, **more
        )
        return said.choices[0].message.content or ""

    async def _embed(self, texts: list[str], **_: Any) -> Any:
        said = await self._api.embeddings.create(
            model=self._settings["embedder"], input=texts, encoding_format="float"
        )
        return np.array([each.embedding for each in said.data], dtype=np.float32)
