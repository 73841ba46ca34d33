"""Several models over the same cases, side by side, and whether what lies between them is more than chance."""
