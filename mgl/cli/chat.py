"""``mgl chat``: talk with a model that remembers the conversation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mgl.cli.options import Kind, ModelChoice, argument, option, takes_model
from mgl.cli.output import clean, count, print_answer, print_nodes, say
from mgl.errors import MglError
from mgl.types import Answer, Turn

if TYPE_CHECKING:
    from mgl.lab.talk import Talk

HISTORY = 200  # lines
COMMANDS = "/topics  show the memory    /end  end the session    /quit  leave"


@takes_model
def chat(
    name: Annotated[str, argument("NAME", "The conversation; a new name starts one.")],
    speaker: Annotated[str, option("--as NAME", "Your name.")] = "user",
    persona: Annotated[str, option("--persona TEXT", "Describe how the model is to behave.")] = "",
    memory: Kind = None,
    *,
    options: dict[str, Any],
    choice: ModelChoice,
) -> None:
    """Talk with a model that remembers this and earlier sessions.

    Each line is stored before it is answered, and each reply lists the earlier turns it uses. The
    arrow keys edit the line and bring back earlier ones. Ctrl-C clears the line, or stops the reply
    that is being written; a second one ends the chat if the reply does not stop. Leaving (/quit,
    Ctrl-D) loses nothing: the same command continues.
    """
    from mgl.cli.progress import open_observer
    from mgl.lab import Lab
    from mgl.memories.turns import Voice

    with open_observer() as observer, Lab.open(choice, observer=observer) as lab:
        talk = lab.talk(name.strip(), memory=memory, **options)
        said, forgotten = talk.read_turns(), talk.find_forgotten()
        kept = [turn for number, turn in enumerate(said) if number not in forgotten]
        say(f"{name}: {count(len(kept), 'turn')} so far; {COMMANDS}")
        read_line = _open_prompt(speaker, (turn.text for turn in kept if turn.speaker == speaker))
        session = datetime.now().astimezone().isoformat(timespec="seconds")
        failed: MglError | None = None
        while (line := read_line()) is not None and line != "/quit":
            failed = None
            observer.resume()
            try:
                if line.startswith("/"):
                    _obey(talk, line)
                    continue
                now = datetime.now().astimezone()
                turn = Turn(talk.choose_id(), speaker, line, now, session)
                printed = _Printed(observer.hush)
                answer = talk.reply(turn, Voice(persona=persona), hear=printed).answer
                if printed.text:
                    typer.echo("")
                turns = talk.memory.conversation.turns
                answer = _leave_out_last(answer, turns, len(said))
                print_answer(answer, turns, is_said=bool(printed.text))
                talk.settle_later()  # while the next line is typed
            except MglError as error:
                failed = error
                say(f"error: {error.message}")
                say(f"hint: {error.hint}; what you said is kept")
            except KeyboardInterrupt:
                if not sys.stdin.isatty():
                    raise
                say("\nstopped; what you said is kept")
            finally:
                observer.hush()  # nothing is drawn over the prompt
        talk.pause()  # the next turn does what is due
    if failed is not None:
        raise typer.Exit(failed.exit_code)


def _leave_out_last(answer: Answer, turns: Sequence[Turn], begun: int) -> Answer:
    """The answer without citations of the last turns since this chat has ``begun``, which stand on
    the screen."""
    from mgl.memories.talk import RECENT

    seen = {turn.id for turn in turns[max(begun, len(turns) - RECENT - 1) :]}
    cited = tuple(each for each in answer.citations if each.node_id not in seen)
    return replace(answer, citations=cited)


def _open_prompt(speaker: str, said: Iterable[str]) -> Callable[[], str | None]:
    """Make what reads the next line that is not blank; it gives None at the end of the input.

    On a terminal the line can be edited, Ctrl-C clears it, and ``said`` is its history. That is
    kept in memory alone: a file of it would keep what ``mgl forget`` deletes.
    """
    ask: Callable[[], str]
    is_edited = sys.stdin.isatty()
    if is_edited:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory

        typed = [clean(text) for text in said]
        prompt: PromptSession[str] = PromptSession(history=InMemoryHistory(typed[-HISTORY:]))

        def ask() -> str:
            return prompt.prompt(f"{clean(speaker)}> ")
    else:
        ask = input

    def read_line() -> str | None:
        with suppress(EOFError):
            while True:
                try:
                    if line := ask().strip():
                        return line
                except KeyboardInterrupt:
                    if not is_edited:
                        return None
        return None

    return read_line


class _Printed:
    """Prints a reply as it is written, on a new line where it begins anew; ``hush`` silences the
    progress, which would be written over it."""

    def __init__(self, hush: Callable[[], None]) -> None:
        self._hush = hush
        self.text = ""

    def __call__(self, reply: str) -> None:
        if reply == self.text:
            return
        self._hush()
        begun = "" if reply.startswith(self.text) else "\n"
        typer.echo(begun + clean(reply.removeprefix(self.text)), nl=False)
        self.text = reply


def _obey(talk: Talk, line: str) -> None:
    if line in ("/topics", "/end") and not talk.read_turns():
        say("nothing was said yet")
    elif line == "/topics":
        view = talk.memory.view()
        print_nodes(view)
        if not view.nodes:
            say("nothing is summarized yet: /end does it now, later turns by themselves")
    elif line == "/end":
        talk.end_session()
        stats = talk.stats()
        say(f"{count(stats.nodes, 'node')}, {count(stats.edges, 'edge')}")
    else:
        if line != "/help":
            say(f"no such command: {line}")
        say(COMMANDS)
