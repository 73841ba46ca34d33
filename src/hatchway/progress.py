"""What a long piece of work says while it runs: lines through :mod:`logging`, and a bar where somebody is watching.

The library never prints. It logs to the logger ``hatchway``, which is silent until somebody configures logging (the
command line does, to stderr); a bar is drawn only when that logger lets INFO through and stderr is a terminal.
"""

import logging
import sys
import time
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm

_LOGGER = logging.getLogger("hatchway")
_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_WORTH_A_LINE = 1.0


def note(line: str) -> None:
    """Say one line to whoever listens to the logger ``hatchway``, at level INFO."""
    _LOGGER.info("%s", line)


class Progress:
    """Shows how far a piece of work has come; use it as a context manager around the work.

    On a terminal it is a bar on stderr. Elsewhere it is a log line at most every ten seconds, and one at the end of
    work that took a second or more, so that a file of logs stays readable. Where the logger ``hatchway`` is above INFO
    it is silent.

    Args:
        total: how many units there are, or None where nobody knows.
        label: what is being done, e.g. ``"epoch 3"``.
        unit: the name of one unit, e.g. ``"step"``; more than one are called ``"steps"``.
    """

    def __init__(self, total: int | None, label: str, unit: str = "step") -> None:
        self.total = total
        self.label = label
        self.unit = unit
        self.done = 0
        self._text = ""
        self._bar: tqdm[Any] | None = None
        self._start = self._last_line = 0.0

    def __enter__(self) -> Self:
        self._start = self._last_line = time.monotonic()
        if _LOGGER.isEnabledFor(logging.INFO) and sys.stderr.isatty():
            bar: tqdm[Any] = tqdm(
                total=self.total, desc=self.label, unit=self.unit, file=sys.stderr, dynamic_ncols=True
            )
            self._bar = bar
        return self

    def advance(self, n: int = 1, text: str = "") -> None:
        """Count ``n`` more units as done; ``text`` (say, the current loss) stands beside the count until replaced."""
        self.done += n
        self._text = text or self._text
        if self._bar is not None:
            self._bar.set_postfix_str(self._text, refresh=False)
            self._bar.update(n)
            return
        now = time.monotonic()
        if now - self._last_line >= _SECONDS_BETWEEN_LINES and self.done != self.total:  # the end has its own line
            self._last_line = now
            note(self._line(now))

    def _line(self, now: float) -> str:
        """Write the state as one line: how many, how long, how long still, and the text."""
        seconds = now - self._start
        units = self.unit if self.done == self.total == 1 else f"{self.unit}s"
        parts = [f"{self.done:,} {units} in {seconds:.0f} s"]
        if self.total is not None and self.done < self.total:
            parts = [f"{self.done:,}/{self.total:,} {units} ({self.done / self.total:.0%}) in {seconds:.0f} s"]
            if self.done:
                parts.append(f"{seconds * (self.total - self.done) / self.done:.0f} s to go")
        return f"{self.label}: {', '.join(parts + ([self._text] if self._text else []))}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
            return
        now = time.monotonic()
        if kind is not None:
            note(f"{self._line(now)} (stopped early)")
        elif now - self._start >= _SECONDS_WORTH_A_LINE:
            note(self._line(now))
