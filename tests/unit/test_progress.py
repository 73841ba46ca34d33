"""Progress says what is worth a line in a log, and nothing where nobody listens."""

import logging
import sys

import pytest

from hatchway.progress import Progress, note


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that Progress reads."""
    clock = Clock()
    monkeypatch.setattr("hatchway.progress.time.monotonic", clock)
    return clock


def test_lines_are_ten_seconds_apart(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A step a second for 25 seconds: a line at 10, at 20, and one at the end."""
    caplog.set_level(logging.INFO, logger="hatchway")
    with Progress(50, "epoch 1", "step") as shown:
        for second in range(1, 26):
            clock.now = float(second)
            shown.advance(2, f"loss {second}")
    assert caplog.messages == [
        "epoch 1: 20/50 steps (40%) in 10 s, 15 s to go, loss 10",
        "epoch 1: 40/50 steps (80%) in 20 s, 5 s to go, loss 20",
        "epoch 1: 50 steps in 25 s, loss 25",
    ]


def test_the_end_is_said_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Also where the last unit falls on a moment that is due a line."""
    caplog.set_level(logging.INFO, logger="hatchway")
    with Progress(2, "days", "day") as shown:
        for seconds in (12.0, 60.0):
            clock.now = seconds
            shown.advance()
    assert caplog.messages == ["days: 1/2 days (50%) in 12 s, 12 s to go", "days: 2 days in 60 s"]


def test_an_error_is_said(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Work that ends with an error does not end with a line that reads like success."""
    caplog.set_level(logging.INFO, logger="hatchway")

    def read() -> None:
        with Progress(None, "reading", "row") as shown:
            shown.advance(7)
            raise KeyError

    with pytest.raises(KeyError):
        read()
    assert caplog.messages == ["reading: 7 rows in 0 s (stopped early)"]


def test_work_of_a_moment_is_not_worth_a_line(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Below a second nothing is said; from a second on one line is, and one unit is called by its name."""
    caplog.set_level(logging.INFO, logger="hatchway")
    with Progress(1, "quick", "file") as shown:
        clock.now = 0.5
        shown.advance()
    with Progress(1, "slow", "file") as shown:
        clock.now = 1.5
        shown.advance()
    assert caplog.messages == ["slow: 1 file in 1 s"]


def test_silent_where_the_logger_is(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """Above INFO there is neither a line nor a bar."""
    caplog.set_level(logging.WARNING, logger="hatchway")
    note("nobody hears this")
    with Progress(1, "quiet") as shown:
        shown.advance()
    assert caplog.messages == []
    assert capsys.readouterr().err == ""


def test_a_bar_on_a_terminal(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the bar shows the label, the count and the text, and there are no lines."""
    caplog.set_level(logging.INFO, logger="hatchway")
    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "write", lambda text: written.append(text) or len(text))  # type: ignore[func-returns-value]
    with Progress(4, "epoch 2") as shown:
        shown.advance(4, "loss 0.5")
    bar = "".join(written)
    assert "epoch 2: 100%" in bar
    assert "4/4" in bar
    assert "loss 0.5" in bar
    assert caplog.messages == []
