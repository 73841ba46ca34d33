"""Nearest neighbours by raw dot product: exact and approximate search behind one protocol, and the served bundle."""
