"""Benchmarks: their files read into conversations, documents, questions and gold answers.

One module a benchmark. They know the shared rooms, and nothing of memories or of scoring.
"""
