"""A process that ends at a chosen change of the disk: nothing in the package catches it, nothing is done after it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

CALLS = ("mkdir", "rename", "replace", "rmdir", "symlink", "unlink")
"""What changes folders; all that the package does to one goes through these."""


class Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, call: int) -> Iterator[list[str]]:
    """End the process before its change number ``call`` of the disk, counted from 0.

    Yields:
        the changes that were asked for, by name; the block has to end with :class:`Killed` where they reach ``call``.
    """
    done: list[str] = []

    def ending(name: str, whole: Callable[..., object]) -> Callable[..., object]:
        def change(*arguments: object, **named: object) -> object:
            done.append(name)
            if len(done) > call:  # what would undo it comes too late as well
                raise Killed(f"before {name} number {call}")
            return whole(*arguments, **named)

        return change

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, ending(name, getattr(os, name)))
        yield done
