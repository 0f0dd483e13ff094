"""The memories of a running `mgl up` in the shapes of other libraries, a module and an extra each.

- ``langchain``: a retriever and a chat history.
- ``llamaindex``: a retriever.
- ``mem0``: a client with mem0's methods, for programs that move; it needs nothing besides mgl.
"""
