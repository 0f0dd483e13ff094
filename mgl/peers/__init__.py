"""Peers: other packages, each in an environment of its own, and the proxy that records their calls.

- ``wire`` is the server's side of the OpenAI API: read requests, write answers and errors,
- ``tools`` gives tool calls to models that have none of their own,
- ``proxy`` serves a model of mgl's to another program, over the call log.
"""
