"""An index that was cut short, built again from the vectors beside it: to the same bytes, or not at all."""

from pathlib import Path

from hatchway.artefacts.atomic import replacing_file
from hatchway.artefacts.manifest import read_manifest, sha256_of
from hatchway.errors import ArtefactError, HatchwayError
from hatchway.index.build import IndexSettings, build_index, sample_rows
from hatchway.index.bundle import Bundle, BundleManifest
from hatchway.index.files import save_index
from hatchway.index.model_bundle import living_rows, queries_of
from hatchway.progress import note
from hatchway.randomness import stream

_REMEDY = "go back to an earlier night: hatchway rollback NIGHTS"


def repaired(path: Path, settings: IndexSettings) -> bool:
    """Build the index of a bundle again, where nothing else of the bundle is damaged.

    Args:
        path: the bundle.
        settings: how its index was built.

    Returns:
        whether the bundle is whole again: the new index has the hash that the manifest names.
    """
    try:
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
    except HatchwayError as error:
        note(f"the index cannot be mended: {error}")
        return False
    note(f"{path / part.name} was cut short or changed; it is built again, to the same bytes")
    return True


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        return sha256_of(path) == sha256
    except OSError:
        return False
