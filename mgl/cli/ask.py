"""``mgl ask``: answer a question from a file, or from a memory that was built before."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mgl.cli.options import (
    AsJson,
    ConversationName,
    Kind,
    ModelChoice,
    Yes,
    argument,
    complete_source,
    open_lab,
    option,
    takes_model,
)
from mgl.cli.output import print_answer, print_json, print_stats, print_usage


@takes_model
def ask(
    source: Annotated[
        str,
        argument(
            "SOURCE",
            "A txt, md, html, epub, pdf or docx file, a chat log, a memory or a conversation.",
        ),
    ],
    question: Annotated[str, argument("QUESTION", "What you want to know.")],
    asker: Annotated[str | None, option("--as NAME", "Who is asking: “I” in the question.")] = None,
    memory: Kind = None,
    conversation: ConversationName = None,
    *,
    options: dict[str, Any],
    choice: ModelChoice,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Ask a file, a memory or a conversation a question.

    The answer comes with the passages or turns that support it. A file is first read into a
    memory (mindgraph for documents, gam for chat logs). If interrupted, run the same command
    again: it continues where it stopped, and finished model calls are never repeated.
    """
    from mgl.memories.results import describe_reading
    from mgl.types import Question

    with open_lab(choice, yes=yes) as lab:
        result = lab.ask(
            complete_source(lab, source),
            Question(question, asker=asker),
            memory=memory,
            conversation=conversation,
            **options,
        )
        summary = lab.memory(result.memory_id)
        is_talk = summary.turns is not None
        turns = lab.cited_turns(summary.id, result.answer) if is_talk else None
        reading = describe_reading(result.answer, None if is_talk else lab.document(summary.id))
    if as_json:
        print_json(result.to_json())
        return
    print_answer(result.answer, turns)
    typer.echo("")
    print_stats(result.stats, summary.unit, summary.turns)
    if reading is not None:
        typer.echo(reading)
    print_usage(result.usage)
    typer.echo(f"memory: {summary.id} ({summary.record.kind}; mgl show {summary.id})")
