"""GAM's configuration: the paper's values by default, each with its source.

What goes beyond the paper is a named option here and is off by default.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from mgl.memories.talk import TalkConfig


class GamConfig(TalkConfig):
    """How a conversation is remembered and read.

    ``partition`` is what ends a topic: ``semantic`` boundaries that the model finds (the paper's),
    or, as in its Fig. 3, ``session`` ends, a fixed ``window`` of tokens or a number of ``turns``.
    ``boundaries`` is what finds the semantic ones: the model (``prompt``, E.3), or, without a call,
    the adapter of this name (`mgl train boundary`, ours), which makes the partition ``semantic``.
    ``without`` leaves out one part, as in its Table 3: ``tan`` searches all events flatly, ``epg``
    reads summaries of topics and their neighbours and nothing below them, ``ssm`` consolidates
    every turn at once, ``mfr`` ranks events by vector likeness alone.
    ``indicators`` are asked of the model (``prompt``, §4.1) or found by ``rules``.
    ``private`` says whether secrets and personal data are kept, or masked before a model sees them.
    """

    READING: ClassVar[frozenset[str]] = frozenset(
        "anchors k beta_time beta_role beta_conf answer_tokens".split()
    )

    partition: Literal["semantic", "session", "window", "turns"] = "semantic"
    boundaries: str = "prompt"
    without: Literal["tan", "epg", "ssm", "mfr"] | None = None
    buffer_tokens: int = Field(2048, ge=32, description="tokens that the buffer holds (§3.3)")
    window_tokens: int = Field(
        256, ge=16, description="tokens of a topic cut by window: 256 or 512 (§4.4)"
    )
    window_turns: int = Field(3, ge=1, description="turns of a topic cut by turns: 3 or 5 (§4.4)")
    noise: float = Field(
        0.0, ge=0.0, le=1.0, description="share of extra boundaries, η (Appendix C.3)"
    )
    candidates: int = Field(5, ge=0, description="topics that a new one may be linked to (§3.3)")
    threshold: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="least confidence of a link, τ (Algorithm 3); no value printed",
    )
    indicators: Literal["prompt", "rules"] = "prompt"
    anchors: int = Field(
        10, ge=1, description="topics that a search begins from, k of Eq. 9 (Appendix D.2)"
    )
    k: int = Field(10, ge=1, description="events read for an answer (Appendix D.2)")
    beta_time: float = Field(1.4, ge=1.0, description="weight of a matching time (§4.1)")
    beta_role: float = Field(1.4, ge=1.0, description="weight of a matching speaker (§4.1)")
    beta_conf: float = Field(1.2, ge=1.0, description="weight of a consistent event (§4.1)")
    private: Literal["keep", "mask"] = "keep"

    @model_validator(mode="before")
    @classmethod
    def _cut_by_detector(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("boundaries", "prompt") != "prompt":
            return {"partition": "semantic", **given}
        return given

    @model_validator(mode="after")
    def _check_detector(self) -> Self:
        if self.detector is not None and self.cut_by != "semantic":
            raise ValueError(f"no boundaries are looked for where topics are cut by {self.cut_by}")
        return self

    @property
    def cut_by(self) -> str:
        """The partition that holds: without the semantic state machine each turn is a topic."""
        return "turns" if self.without == "ssm" else self.partition

    @property
    def detector(self) -> str | None:
        """The adapter that finds boundaries, if any does."""
        return None if self.boundaries == "prompt" else self.boundaries
