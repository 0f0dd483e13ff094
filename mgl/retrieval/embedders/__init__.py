"""Embedders: texts to vectors, by a library in this process or by a server.

Nothing is imported here: the libraries are large, and each module is imported where it is needed
(``mgl.retrieval.opening`` does so by a model's name).
"""
