"""The log and the catalogue: store, importers, positives, splits, and the arrays made of them."""
