"""The row that a buyer sees: an HTTP API and a page over one bundle."""
