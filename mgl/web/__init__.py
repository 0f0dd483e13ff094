"""What leaves a memory to be looked at: JSON, GraphML and a page with the graph beside its text.

``mgl.memories.view`` holds what a memory shows of itself, ``mgl.web.export`` what is made of it.
"""
