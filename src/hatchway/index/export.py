"""Item vectors for other programs: Parquet for tables, NumPy for arrays, the user's own ids in both."""

from pathlib import Path

import numpy as np
import polars as pl

from hatchway.artefacts.atomic import replacing_file
from hatchway.data.catalogue import Catalogue
from hatchway.index.protocol import Float32


def export_vectors(folder: Path, catalogue: Catalogue, vectors: Float32) -> tuple[Path, Path, Path]:
    """Write the vectors of a catalogue, each file whole or not at all.

    Args:
        folder: where to write; made if it is not there.
        catalogue: the N items.
        vectors: [N, d] float32 item vectors.

    Returns:
        ``item_vectors.parquet`` (columns ``item`` and ``vector``), ``item_vectors.npy`` ([N, d] float32), and
        ``item_ids.npy`` ([N] int64 or Unicode strings): the same order in all three.
    """
    table, array, ids = (folder / name for name in ("item_vectors.parquet", "item_vectors.npy", "item_ids.npy"))
    frame = pl.DataFrame(
        {"item": catalogue.ids, "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, vectors.shape[1]))}
    )
    with replacing_file(table) as partial:
        frame.write_parquet(partial, compression="zstd")
    with replacing_file(array) as partial, partial.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)
    given = catalogue.ids.to_numpy()
    with replacing_file(ids) as partial, partial.open("wb") as file:
        np.save(file, given if catalogue.identifiers.are_integers else given.astype(np.str_), allow_pickle=False)
    return table, array, ids
