"""The steps of one night, from the day's events to a published bundle, and what watches over them."""
