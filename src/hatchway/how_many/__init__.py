"""How many negatives a positive should have: an estimate from AUCs, and a schedule over a run."""
