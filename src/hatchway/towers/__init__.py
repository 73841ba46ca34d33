"""The two towers: a query vector, an item vector, and a raw dot product between them, everywhere the same."""
