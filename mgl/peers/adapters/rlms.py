"""RLM by its authors' package: a model reads the text by the code that it writes for a question.

The code runs in this process, with its rights. Nothing is read beforehand, and nothing is found:
the answer is the package's own.
"""

from typing import Any

from openai import APIStatusError
from rlm import RLM


class TurnCounter:
    """Counts what a run does, in the place of the package's log."""

    def __init__(self) -> None:
        self.turns = self.blocks = self.failed = 0
        self.has_ended = False

    def clear_iterations(self) -> None:
        self.__init__()  # type: ignore[misc]

    def log_metadata(self, *_: Any) -> None:
        pass

    def log(self, turn: Any) -> None:
        self.turns += 1
        self.blocks += len(turn.code_blocks)
        self.failed += sum(bool(block.result.stderr) for block in turn.code_blocks)
        self.has_ended = turn.final_answer is not None

    def get_trajectory(self) -> None:
        return None


class RlmsAdapter:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._turns = TurnCounter()
        self._texts: list[str] = []
        self._most = settings["turns"]
        server = {"base_url": settings["base_url"], "api_key": settings["key"], "timeout": None}
        self._rlm = RLM(
            backend="openai",
            backend_kwargs={**server, "model_name": settings["model"]},
            environment="local",
            max_iterations=self._most,
            logger=self._turns,
        )

    def read(self, units: list[dict[str, Any]]) -> None:
        self._texts += [unit["text"] for unit in units]

    def finish(self) -> dict[str, int]:
        return {}

    def retrieve(self, question: str) -> list[dict[str, Any]]:  # noqa: ARG002
        return []

    def answer(self, question: str) -> dict[str, Any]:
        """The answer; "" where a history outgrew the model's context."""
        text, why = "", ""
        try:
            said = self._rlm.completion("\n".join(self._texts), root_prompt=question)
            text = str(said.response)
        except APIStatusError as error:
            why = f"refused: {error.message}"
        turns = self._turns
        if turns.turns > self._most:
            why = "no turn ended it: the answer was asked for"
        counted = f"{turns.turns} turns, {turns.blocks} blocks of code, {turns.failed} failed"
        return {"text": text, "trace": [counted, *([why] if why else [])]}
