"""``mgl rename``: give a document or conversation another name."""

from __future__ import annotations

from typing import Annotated

import typer

from mgl.cli.options import argument, complete_id, open_lab
from mgl.cli.output import one_line
from mgl.errors import StoreError


def rename(
    source: Annotated[
        str,
        argument(
            "SOURCE", "The name of a document or conversation, or a memory's id, or its beginning."
        ),
    ],
    name: Annotated[str, argument("NAME", "The new name.")],
) -> None:
    """Rename a document or conversation.

    Its memories, their ids and their history stay. The old name of a conversation is free for
    another one.
    """
    with open_lab() as lab:
        try:
            lab.rename(source, name)
        except StoreError:  # no exact name: it may begin an id
            lab.rename(complete_id(lab, source), name)
    typer.echo(f"{one_line(source, 60)} is called {one_line(name, 60)} now")
