"""Days as nights name them."""

import pytest

from hatchway.errors import UsageError
from hatchway.nightly.days import day_number


@pytest.mark.parametrize("name", ["2026-3-4", "2026-03-4"])
def test_a_day_is_named_as_its_folder_is(name: str) -> None:
    """Nights are ordered by their names, so a short one would stand after all others."""
    with pytest.raises(UsageError, match="2026-03-04"):
        day_number(name)
