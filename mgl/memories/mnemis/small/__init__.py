"""What preset ``small`` does in place of a model's replies (ours).

``terms`` reads an episode, ``likeness`` forms a layer of the hierarchy.
"""
