"""When the matrix unit is used, and what memory that takes; what it computes is tested with tiles of the other kind."""

import pytest
import torch

from hatchway import compiled
from hatchway.losses import matrix_unit_rows
from hatchway.losses.matrix_unit_rows import MatrixUnitRows

pytestmark = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")


@pytest.mark.parametrize(
    ("batch", "columns", "width", "products", "wanted"),
    [
        (512, 1024, 64, "bf16", True),
        (512, 1024, 64, "float32", False),
        (511, 1024, 64, "bf16", False),
        (512, 1023, 64, "bf16", False),
        (512, 1024, 15, "bf16", False),
        (512, 1024, 256, "bf16", True),
        (512, 1024, 257, "bf16", False),
    ],
)
def test_only_where_bf16_will_do_and_there_is_enough(
    monkeypatch: pytest.MonkeyPatch, batch: int, columns: int, width: int, products: str, wanted: bool
) -> None:
    """Nobody's float32 is rounded unasked; few rows or columns are the library's; and there must be a unit."""
    monkeypatch.setattr(matrix_unit_rows, "present", lambda: True)
    query, items = torch.zeros(batch, width), torch.zeros(columns, width)
    assert matrix_unit_rows.suitable(query, items, products) is wanted
    assert not matrix_unit_rows.suitable(query.double(), items.double(), products)
    monkeypatch.setattr(matrix_unit_rows, "present", lambda: False)
    assert not matrix_unit_rows.suitable(query, items, products)


def test_memory_of_a_thread_does_not_grow_with_columns() -> None:
    """Blocks of at most 256 rows, of whole SQUAREs, and no more than there are; nothing of them is kept."""
    sizes = []
    for batch, columns in ((10**4, 5_096), (10**4, 66_536), (30, 400)):
        query, items = torch.zeros(batch, 16), torch.zeros(columns, 16)
        blocks = MatrixUnitRows(query, items, torch.zeros(columns), 2, gradients=True)
        sizes.append({(len(memory[-1]), sum(array.nbytes for array in memory)) for memory in blocks._memory})
    assert sizes[0] == sizes[1]
    assert [{rows for rows, _ in size} for size in sizes] == [{256}, {256}, {32}]
