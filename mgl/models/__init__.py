"""Models: what each one is, and where its weights lie."""
