"""The command line: one small module a command, and what they share in :mod:`hatchway.cli.output`."""
