"""``hatchway export``: item vectors with their ids, or mined negatives, for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from hatchway.cli.output import JsonOption, QuietOption, begin, check_place, emit
from hatchway.errors import UsageError


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="A finished run, or a bundle.")],
    out: Annotated[Path, typer.Option(help="Folder to write to; other files in it are left alone.")],
    triplets: Annotated[
        bool, typer.Option("--triplets", help="Write the mined negatives of a run instead (docs/mining.md).")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write item vectors with their ids, or mined negatives.

    OUT/item_vectors.parquet has the columns item and vector; OUT/item_vectors.npy ([items, dimensions] float32) and
    OUT/item_ids.npy hold the same in the same order. Scores are raw dot products: do not normalise the vectors.

    With --triplets, OUT/triplets.parquet has a row for each training positive: who asked, the positive, the negatives
    with their scores and ranks, and what was refused and why. A run that mined nothing is mined for with its own
    bundle.
    """
    begin(quiet)
    check_place(out, f"--out {out}")
    if triplets:
        _export_triplets(path, out, json)
        return
    from hatchway.index.bundle import Bundle, is_bundle
    from hatchway.index.export import export_vectors
    from hatchway.index.model_bundle import item_vectors
    from hatchway.training.run_folder import RunFolder

    if is_bundle(path):
        bundle = Bundle.open(path)
        catalogue, vectors = bundle.catalogue, bundle.vectors
    else:
        folder = RunFolder.open(path)
        log = folder.log()
        catalogue, vectors = log.catalogue, item_vectors(folder.load_model(log), len(log.catalogue))
    files = export_vectors(out, catalogue, vectors)
    payload = {"files": [str(file) for file in files], "items": len(vectors), "dimension": vectors.shape[1]}
    text = "\n".join(map(str, files))
    emit(payload, f"{text}\n{len(vectors):,} items, {vectors.shape[1]} dimensions each", json)


def _export_triplets(path: Path, out: Path, json: bool) -> None:
    """Write the mined set of a run."""
    from hatchway.index.bundle import is_bundle
    from hatchway.job import export_triplets

    if is_bundle(path):
        raise UsageError(
            f"{path} is a bundle: it has an index but no positives to mine for; name the run it was made of"
        )
    file, record = export_triplets(path, out)
    emit({"files": [str(file)], "mining": record}, f"{file}\n{record.said()}", json)
