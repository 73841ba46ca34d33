"""The cleaned days: which of them are removed."""

from pathlib import Path

import pytest

from hatchway.nightly.accepted import remove_days_before
from hatchway.nightly.days import day_number


@pytest.mark.parametrize("history", [500_000, 1_000_000, 10**9])
def test_a_history_longer_than_there_are_years_removes_nothing(tmp_path: Path, history: int) -> None:
    """Whoever wants all days writes some large number; no year of three digits sorts before 2026."""
    for day in ("2026-03-01", "2026-03-02"):
        (tmp_path / f"{day}.parquet").touch()
    remove_days_before(tmp_path, day_number("2026-03-02") - history)
    assert len(list(tmp_path.iterdir())) == 2
    remove_days_before(tmp_path, day_number("2026-03-02"))
    assert [path.name for path in tmp_path.iterdir()] == ["2026-03-02.parquet"]
