"""OpenAI's API, from both sides: the client of a server, and the servers that mgl is itself.

- ``shapes`` is what is sent: requests, answers, events and errors, each defined once,
- ``requests``, ``replies``, ``errors`` and ``events`` write and read them,
- ``servers`` is the connection to a server, ``formats`` the constraints that it may take, and
  ``engine`` the engine over both,
- ``listening`` is an HTTP server of ours, with ``connections`` and ``faults``; ``completing``
  answers requests by a model, with ``tools`` for one that has none of its own.
"""
