"""Is the right item near the top? The whole catalogue ranked, ties in expectation, with intervals and slices."""
