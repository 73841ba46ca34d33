"""Losses that see vectors and a ledger, never a tower."""
