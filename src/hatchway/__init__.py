"""Hatchway: the negatives behind embedding retrieval, drawn, corrected, filtered and explained."""

__version__ = "0.1.0"
