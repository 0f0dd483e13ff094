"""Rerankers: how well each text answers a query, by a model in this process, a server or a rule.

Nothing is imported here: the libraries are large, and each module is imported where it is needed
(``mgl.retrieval.opening`` does so by a model's name).
"""
