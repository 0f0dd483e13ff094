"""An engine that answers at once, for measurements of what mgl costs without a model."""

from __future__ import annotations

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.fakes import SchemaEngine


class InstantEngine(SchemaEngine):
    """Answers from the first memory that it is shown; fills the schema for all else."""

    async def generate(self, request: Request) -> Completion:
        properties = (request.json_schema or {}).get("properties", {})
        if {"memories", "answer"} == set(properties):
            return Completion('{"memories": [1], "answer": "Yes."}', "stop", TokenUsage(500, 10))
        return await super().generate(request)
