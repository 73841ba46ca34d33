"""Where negatives come from, and the ledger of how often each was likely to be drawn."""
