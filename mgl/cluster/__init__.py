"""Runs sharded over a Ray cluster: each worker has a model server, and one log has every call.

    >>> with connect(None) as ray:                                    # doctest: +SKIP
    ...     execute = shard(ray, home, choice, urls, observer, concurrency=8)

Units of a run go to the workers as values, and what comes of them comes back as values, so no
folder need be shared. The runner keeps the records, as in a run without a cluster. Calls, token
counts and vectors are asked of, and kept in, the home of the machine that the run was started on:
a unit that is begun again elsewhere pays nothing twice, and a replay needs that home alone.
"""

from mgl.cluster.connecting import connect
from mgl.cluster.executor import shard

__all__ = ["connect", "shard"]
