"""A bundle that was damaged, mended from what lies beside it: to the same bytes, or not at all.

An index is built again from the vectors. A manifest is written again from the night's record, which knows the digest
that it must have.
"""

from collections.abc import Iterator
from pathlib import Path

import pydantic

from hatchway.artefacts.atomic import replacing_file, write_text
from hatchway.artefacts.manifest import MANIFEST, describe_parts, digest, read_manifest, sha256_of
from hatchway.data.days import day_name
from hatchway.errors import ArtefactError, HatchwayError
from hatchway.index.build import IndexFacts, IndexSettings, build_index, sample_rows
from hatchway.index.bundle import Bundle, BundleManifest
from hatchway.index.files import read_vectors, save_index
from hatchway.index.model_bundle import living_rows, queries_of
from hatchway.nightly.days import day_number
from hatchway.nightly.pointer import NightRecord, read_record
from hatchway.nightly.state import StateManifest
from hatchway.progress import note
from hatchway.randomness import stream

_REMEDY = "go back to an earlier night: hatchway rollback NIGHTS"


def has_its_manifest(path: Path) -> bool:
    """Say whether the manifest of a night's bundle can be read, and is the one that the night's record knows of."""
    record = _record_of(path)
    try:
        found = digest(read_manifest(path, BundleManifest, _REMEDY))
    except ArtefactError:
        return False
    return record is None or record.bundle in (None, found)


def repaired(path: Path, settings: IndexSettings) -> bool:
    """Mend the one part of a night's bundle that is damaged, if it is the index or the manifest.

    Args:
        path: the bundle, beside the night's record.
        settings: how its index was built.

    Returns:
        whether the bundle is whole again: the new index has the hash that the manifest names, the new manifest the
        digest that the record names.
    """
    try:
        if not has_its_manifest(path):
            return _manifest_again(path)
        manifest = read_manifest(path, BundleManifest, _REMEDY)
        damaged = [part for part in manifest.parts if not _is_whole(path / part.name, part.sha256)]
        if len(damaged) != 1 or not damaged[0].name.startswith("index."):
            return False
        part, bundle = damaged[0], Bundle(path, manifest)
        generator = stream(settings.seed, "index", "queries")
        sampled = sample_rows(len(bundle.catalogue), settings.sampled_queries, generator)
        rows = None if settings.include_gone else living_rows(bundle.catalogue)
        index, _ = build_index(bundle.vectors, queries_of(bundle).similar(sampled), settings, rows)
        with replacing_file(path / part.name) as partial:
            save_index(partial, index, bundle.vectors)
            if sha256_of(partial) != part.sha256:
                raise ArtefactError(f"{path / part.name} was not built by this version and these settings; {_REMEDY}")
    except (HatchwayError, OSError) as error:
        note(f"the bundle cannot be mended: {error}")
        return False
    note(f"{path / part.name} was cut short or changed; it is built again, to the same bytes")
    return True


def _record_of(path: Path) -> NightRecord | None:
    try:
        return read_record(path.parent)
    except ArtefactError:
        return None


def _manifest_again(path: Path) -> bool:
    """Write a bundle's manifest from its parts, the state and the record, if it has the digest that was published."""
    record = _record_of(path)
    if record is None or record.bundle is None:
        return False
    (path / f".{MANIFEST}.partial").unlink(missing_ok=True)  # of a repair that was killed
    manifest = next((each for each in _candidates(path, record) if digest(each) == record.bundle), None)
    if manifest is None:
        note(f"{path / MANIFEST} cannot be mended: other parts of the bundle are damaged, too; {_REMEDY}")
        return False
    write_text(path / MANIFEST, manifest.model_dump_json(indent=1) + "\n")
    note(f"{path / MANIFEST} was lost or changed; it is written again, to the same bytes")
    return True


def _candidates(path: Path, record: NightRecord) -> Iterator[BundleManifest]:
    """Yield what the manifest may have said; the type of the ids and the last day of the log stand nowhere else."""
    index, training = record.steps.get("index", {}), record.steps.get("train", {})
    state = read_manifest(path.parent / "state", StateManifest, _REMEDY)
    weights = next((part.sha256 for part in state.parts if part.name == "weights.safetensors"), "")
    items, dimension = read_vectors(path / "item_vectors.safetensors").shape
    try:
        parts, facts = describe_parts(path), IndexFacts.model_validate(index.get("index"))
    except pydantic.ValidationError:  # strange files, or a record without an index
        return
    log, step = str(training.get("log")), int(training.get("steps", 0))
    for day in (record.day, day_name(day_number(record.day) - 1)):
        for kind in ("integer", "string"):
            yield BundleManifest(
                items=items,
                dimension=dimension,
                item_type=kind,
                origin={"day": day, "log": log, "step": step, "weights": weights},
                index=facts,
                parts=parts,
            )


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        return sha256_of(path) == sha256
    except OSError:
        return False
