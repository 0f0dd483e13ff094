"""A clock that is set back: the hour that it shows twice."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

__all__ = ["TWICE"]


class _SetBack(tzinfo):
    """Two hours from UTC, and one when the hour comes again."""

    def utcoffset(self, at: datetime | None) -> timedelta:
        return timedelta(hours=1 if at is not None and at.fold else 2)

    def dst(self, at: datetime | None) -> timedelta:
        return self.utcoffset(at) - timedelta(hours=1)


TWICE = datetime(2023, 10, 29, 2, 30, tzinfo=_SetBack())
"""The first time that it shows half past two."""
