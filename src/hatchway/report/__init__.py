"""One run as one HTML file: what was trained, how well it ranks, what its negatives were."""
