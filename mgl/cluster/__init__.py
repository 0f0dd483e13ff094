"""Runs sharded over a Ray cluster: each worker has a model server, and one log has every call.

    >>> with connect(None) as ray:                                    # doctest: +SKIP
    ...     execute = shard(ray, places, urls, concurrency=8)

Units of a run travel to the workers as values, and their results back, so no folder is shared. The
runner keeps the records, as without a cluster. Calls, token counts and vectors are kept in the home
of the machine that started the run: a unit that is started again elsewhere pays nothing twice, and
a replay needs that home alone.
"""

from mgl.cluster.executor import connect, shard

__all__ = ["connect", "shard"]
