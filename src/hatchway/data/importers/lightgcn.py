"""The importer of LightGCN's form: ``train.txt`` and ``test.txt``, ``user item item …`` a line, keeping the split."""

from pathlib import Path

import polars as pl

from hatchway.data.importers.files import as_text, files_of, find, listing
from hatchway.data.importers.intake import ImportSettings, Source, take_in
from hatchway.data.importers.lines import Rows, lines_of
from hatchway.data.importers.sequences import sequence_rows
from hatchway.data.store import Store
from hatchway.errors import DataError

_NO_SETTINGS = ImportSettings()
_FILES = {"train": ("train.txt",), "validation": ("valid.txt", "validation.txt", "val.txt"), "test": ("test.txt",)}


def import_lightgcn(source: Path | str, target: Path | str, settings: ImportSettings = _NO_SETTINGS) -> Store:
    """Import a folder or zip with ``train.txt`` and ``test.txt`` (``valid.txt`` if there is one), plain or gzip.

    The store has the columns buyer, item, order and ``split``. Neither file says when anything happened: the order
    is that of the lines. A user without items (in ``test.txt``: nothing to test) makes no row.

    Args:
        source: the folder or zip.
        target: the store's folder.
        settings: the share of rows that may be rejected.

    Raises:
        DataError: a file is missing or empty, or cannot be read.
    """

    def read(work: Path) -> Source:
        files = files_of(source)
        parts = []
        for split, names in _FILES.items():
            file = find(files, *names)
            if file is None:
                if split == "validation":
                    continue
                raise DataError(f"{source} has no {names[0]} or {names[0]}.gz; it holds {listing(files)}")
            text = as_text(file, work)
            if text is None:
                raise DataError(f"{file.name} is empty; it should have lines such as '0 17 5 42'")
            rows = sequence_rows(lines_of(text), missing_items=False)
            parts.append(rows.with_columns(pl.lit(split).alias("split")))
        return Source(Rows(pl.concat(parts), separator=" ", shown=("buyer", "item")), undated=True)

    return take_in("lightgcn", source, target, read, settings)
