"""What may not stand as a negative for a row, and why."""
