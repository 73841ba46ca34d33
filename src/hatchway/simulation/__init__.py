"""A second-hand furniture market that the package makes itself, and whose truth is known (docs/market.md)."""
