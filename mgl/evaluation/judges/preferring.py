"""Which of two answers a model that judges prefers.

    >>> verdict = await preferred(llm, item, "It rained.", "It rained and blew.")  # doctest: +SKIP
    >>> verdict.score, verdict.reason                                              # doctest: +SKIP
    (0.0, 'The second tells of the wind.')

Source: Edge et al., From Local to Global (2024), compares answers in pairs; prompts ours. Asked in
both orders, a model that names the same place twice has looked at the place
(``mgl.evaluation.judges.reliability.position_bias``).
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from mgl.benchmarks.base import Item
from mgl.evaluation.judges.judge_prompts import BETTER, CLOSER
from mgl.evaluation.judges.judging import JUDGING, Reason, asked, golds_of
from mgl.evaluation.runs.records import VerdictRecord
from mgl.llm.base import LLM

__all__ = ["NEITHER", "preferred"]

NEITHER: Final = 0.5
_SCORES: Final = {"first": 1.0, "second": 0.0, "neither": NEITHER}


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Reason
    better: Literal["first", "second", "neither"]


async def preferred(llm: LLM, item: Item, first: str, second: str) -> VerdictRecord:
    """1 where the first answer is better, 0 where the second is, 0.5 where neither: beside the
    item's passage, or beside its gold answers where it has none.

    Raises the EngineError family, but for a reply that is not as asked for and a prompt that is too
    long: these, and an item with neither, are no verdict, with their reason.
    """
    given = {"question": item.question.text, "first": first, "second": second}
    if item.passage:
        text = BETTER.render(passage=item.passage, **given)
    elif item.golds:
        text = CLOSER.render(gold=golds_of(item), **given)
    else:
        return VerdictRecord(None, "", "the item has neither a passage nor a gold answer")
    return await asked(llm, text, _Reply, lambda it: (_SCORES[it.better], it.reason), JUDGING)
