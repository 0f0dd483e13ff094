"""``mgl build``: read a file into a memory, for one question, several, or any."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mgl.cli.options import (
    AsJson,
    ConversationName,
    DryRun,
    Kind,
    ModelChoice,
    Yes,
    argument,
    open_lab,
    option,
    takes_model,
)
from mgl.cli.output import print_json, print_stats, print_usage, say
from mgl.errors import UsageError


@takes_model
def build(
    path: Annotated[
        Path, argument("FILE", "A txt, md, html, epub, pdf or docx file, or a chat log.")
    ],
    question: Annotated[
        list[str] | None, option("--question -q", "A question to read it for (repeatable).")
    ] = None,
    memory: Kind = None,
    conversation: ConversationName = None,
    *,
    options: dict[str, Any],
    choice: ModelChoice,
    dry_run: DryRun = False,
    retry_failed: Annotated[
        bool, option("--retry-failed", "Read the parts that failed again.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Read a file into a memory, to ask it later.

    Without --question the memory answers any question. If interrupted, run the same command
    again to continue.
    """
    if dry_run and retry_failed:
        raise UsageError("--dry-run builds nothing", hint="leave out --retry-failed")
    with open_lab(choice, yes=yes) as lab:
        if dry_run:
            cost = lab.estimate(
                path, question or (), memory=memory, conversation=conversation, **options
            )
            if as_json:
                print_json(asdict(cost))
            else:
                typer.echo(f"to do: {cost.describe()}")
            return
        result = lab.build(
            path,
            question or (),
            memory=memory,
            conversation=conversation,
            retry_failed=retry_failed,
            **options,
        )
        summary = lab.memory(result.memory_id)
    if as_json:
        print_json(result.to_json())
        return
    print_stats(result.stats, summary.unit, summary.turns)
    print_usage(result.usage)
    typer.echo(f"memory: {result.memory_id} (mgl show {result.memory_id})")
    if summary.record.kind != "graph":  # which answers nothing by itself
        say(f"next: mgl ask {result.memory_id} QUESTION")
