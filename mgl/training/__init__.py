"""Training of the small models that a memory is read with: data, trainers, and how to compare."""
