"""How often each item is likely to be drawn: exact counts, and what every estimate of them must answer."""
