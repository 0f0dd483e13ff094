"""The memory as a service: what other programs use it by, over one lab for each tenant.

- ``server`` serves it: the OpenAI API with memory (``chat``), REST (``rest``) and MCP (``mcp``).
- ``memories`` is what all of them do; ``history`` finds what of a client's history is new.
- ``jobs`` are builds, which survive a restart; ``keys`` say whose memories a request may use.
"""
