"""Batches, the optimiser, checkpoints, and a loop read from top to bottom."""
