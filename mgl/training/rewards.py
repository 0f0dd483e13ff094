"""What an answer is worth when a model is trained by its own answers (GRPO).

>>> score_reply("Ann met Bo.", '{"src": "Ann met Bo"}', '{"src": "Ann met Bo"}', "")["support"]
1.0

reward = answer, where the reply is valid and its quotes are in the prompt, + 0.05 for brevity
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mgl.training.tokens import lay_out

TERMS: Final = ("reward", "answer", "valid", "support", "brevity")
"""What is logged of each answer; the first is what is learnt from."""

BREVITY: Final = 0.05
QUOTES: Final = frozenset({"quote", "sentence", "src"})
"""Fields of replies that quote the text."""


def score_reply(prompt: str, reply: str, gold: str, schema: str) -> dict[str, float]:
    """Score a reply by ``TERMS``, each from 0 to 1 but for the reward, which may be 1.05.

    ``answer`` is the F1 of its words with the gold reply's, ``support`` the share of its quotes
    that are in the prompt to the letter, 1 where it quotes nothing; ``brevity`` is 1 for nothing at
    all and 0 for twice the gold's length. A reply that is not what the schema allows is worth
    nothing.
    """
    valid = float(bool(reply.strip()) and lay_out(reply, schema) is not None)
    said, wanted = _count_words(reply), _count_words(gold)
    answer = 2 * (said & wanted).total() / max(1, said.total() + wanted.total())
    quotes = list(_find_quotes(_parse(reply)))
    support = sum(each in prompt for each in quotes) / len(quotes) if quotes else 1.0
    brevity = max(0.0, 1.0 - len(reply) / max(1, 2 * len(gold)))
    reward = valid * (answer * support + BREVITY * brevity)
    values = (reward, answer, valid, support, brevity)
    return dict(zip(TERMS, values, strict=True))


def reward_term(term: str) -> Any:
    """Make TRL's reward function of one term, which has its name in the log."""

    def score(
        prompts: Sequence[Sequence[Mapping[str, str]]],
        completions: Sequence[Sequence[Mapping[str, str]]],
        gold: Sequence[str],
        described: Sequence[str],
        **_: Any,
    ) -> list[float]:
        return [
            score_reply(prompt[-1]["content"], said[-1]["content"], wanted, schema)[term]
            for prompt, said, wanted, schema in zip(
                prompts, completions, gold, described, strict=True
            )
        ]

    score.__name__ = term
    return score


def _parse(reply: str) -> Any:
    try:
        return json.loads(reply)
    except ValueError:
        return reply


def _count_words(reply: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", _read(reply).casefold()))


def _read(reply: str) -> str:
    """The texts and numbers of a reply, without its layout and its fields' names."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for each in value.values():
                yield from walk(each)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)
        else:
            yield str(value)

    return " ".join(walk(_parse(reply)))


def _find_quotes(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name in QUOTES and isinstance(each, str):
                yield each
            else:
                yield from _find_quotes(each)
    elif isinstance(value, list):
        for each in value:
            yield from _find_quotes(each)
