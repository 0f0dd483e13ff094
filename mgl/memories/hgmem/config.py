"""HGMem's configuration: the paper's values by default, each with its source.

Values that the paper does not print are those of its released code. What goes
beyond the paper, or takes a part of it away, is a named option.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mgl.llm.base import Sampling
from mgl.memories.base import PresetConfig
from mgl.memories.graph.config import GraphConfig

_ATTEMPT = 1000


class HgMemConfig(PresetConfig, GraphConfig):
    """How a question is answered over a document's graph, and how that graph is built.

    - ``retrieval`` leaves out one of the two ways to look for evidence, ``update`` and ``merge``
      one of the ways in which the memory evolves (Table 2).
    - ``force_steps`` takes every step and answers at each (Fig. 3); where the model has no concern,
      the query itself is asked again.
    - ``compat`` ``released_code`` does what the authors' code does where their paper differs:
      exploration searches the whole graph, investigation reaches two hops, an update replaces the
      vertices, the hyperedges of merged points stay, each subquery also finds chunks by its own
      vector, and an unreadable reply restarts the question.
    - ``format`` is how the model replies: JSON under a schema, or the paper's delimited text.
    """

    retrieval: Literal["adaptive", "global_only", "local_only"] = "adaptive"
    update: bool = True
    merge: bool = True
    steps: int = Field(
        3, ge=0, description="steps after the first, which asks the query itself (best: §5.2)"
    )
    force_steps: bool = False
    compat: Literal["paper", "released_code"] = "paper"
    format: Literal["json", "delimiters"] = "json"
    concerns: int = Field(
        3, ge=1, description="concerns a step raises, num_concerns of Fig. 6; released code"
    )
    entities: int = Field(
        5, ge=1, description="entities a subquery finds, n_v of Eq. 1; released code"
    )
    relations: int = Field(
        5, ge=0, description="relations a subquery finds, n_e of §3.2; released code"
    )
    chunks: int = Field(5, ge=1, description="chunks a subquery finds, n_d of §3.2; released code")
    floor: float = Field(
        0.2, ge=-1.0, le=1.0, description="least cosine of a found entity; released code"
    )
    entity_tokens: int = Field(
        100, ge=8, description="tokens shown of a description; released code"
    )
    relation_tokens: int = Field(
        1500, ge=0, description="tokens shown of all relations; released code"
    )
    chunk_tokens_shown: int = Field(
        4000, ge=16, description="tokens shown of all chunks; released code"
    )
    answer_chunks: int = Field(50, ge=1, description="chunks read for an answer; released code")
    answer_chunk_tokens: int = Field(
        10_000, ge=16, description="tokens of these chunks together; released code"
    )
    reply_tokens: int = Field(2048, ge=64, description="tokens of a reply, at most (§4.2)")
    reply_temperature: float = Field(0.8, ge=0.0, description="sampling temperature (§4.2)")
    reply_top_p: float = Field(0.8, gt=0.0, le=1.0, description="sampling top-p; released code")
    reply_seed: int = 0
    answer_tokens: int = Field(2048, ge=16, description="tokens of an answer, at most (§4.2)")
    answer_temperature: float = Field(
        0.8, ge=0.0, description="sampling temperature of an answer (§4.2)"
    )
    answer_top_p: float = Field(
        0.8, gt=0.0, le=1.0, description="sampling top-p of an answer; released code"
    )

    @property
    def released(self) -> bool:
        return self.compat == "released_code"

    @property
    def dense_chunks(self) -> int:
        """How many chunks a subquery finds by its own vector."""
        return 5 if self.released else 0

    def make_sampling(self, step: int, attempt: int = 0) -> Sampling:
        """The sampling of a step. Each step has its own seed, so that a memory which did not change
        is not asked the same again; ``attempt`` counts how often the question was restarted."""
        seed = self.reply_seed + step + _ATTEMPT * attempt
        return Sampling(self.reply_temperature, self.reply_top_p, self.reply_tokens, seed)

    def sample_answer(self, step: int) -> Sampling:
        """The sampling of the answer that is given in a step."""
        seed = self.reply_seed + step
        return Sampling(self.answer_temperature, self.answer_top_p, self.answer_tokens, seed)
