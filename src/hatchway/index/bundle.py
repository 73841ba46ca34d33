"""The bundle: one immutable folder with everything that serving needs, and nothing that must be trusted blindly.

::

    bundle/
      manifest.json              format and version, what it was made from, measured recall, sha256 of every part
      catalogue.parquet          external ids in row order, what a page shows, where items stood in training
      item_vectors.safetensors   [N, d] float32, as the item tower gives them
      weights.safetensors        the query side of the model; no tensors where the item vectors are all there is
      settings.json              the model's settings
      index.safetensors          the index, which says what vectors it is of
      item_encoder.safetensors   what places an item by its columns, where the model reads any
      similar.safetensors        which items are relists or near-duplicates of which, where that was looked for

Nothing in it depends on the clock or on where it lies: the same inputs give the same bytes. Nothing in it is pickled.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy.typing as npt
import polars as pl
import safetensors
import safetensors.numpy
import safetensors.torch
from torch import Tensor

from hatchway.artefacts.atomic import replacing_folder, settle
from hatchway.artefacts.manifest import (
    MANIFEST,
    Manifest,
    describe_parts,
    digest,
    read_manifest,
    verify_parts,
    write_manifest,
)
from hatchway.data.catalogue import Catalogue
from hatchway.errors import ArtefactError, DataError
from hatchway.index.approximate import IvfIndex
from hatchway.index.build import IndexFacts, IndexSettings, build_index
from hatchway.index.exact import ExactIndex
from hatchway.index.files import load_index, read_vectors, save_index
from hatchway.index.protocol import Float32, checked_vectors
from hatchway.screening.similar import SimilarItems

KEPT_COLUMNS = (
    *("title", "category", "price", "seller", "photo", "listed", "gone"),
    *("engagements", "looked_at", "in_history"),
)
"""Catalogue columns that a bundle keeps beside ``item``: what a page shows, and where each item stood in training."""

ENCODER = "item_encoder.safetensors"
"""The part that places an item by its columns; only bundles of models that read columns have it."""

SIMILAR = "similar.safetensors"
"""The part that says which items are relists or near-duplicates of which; not every bundle has it."""

_REMEDY = "make the bundle again: hatchway index RUN"


class BundleManifest(Manifest):
    """What a bundle says of itself.

    Attributes:
        score: how a query and an item are compared; serving compares as training did.
        items: N.
        dimension: d.
        item_type: type of the items' external ids.
        origin: what the bundle was made from, e.g. the store's digest and the checkpoint.
        index: the index, with its measured recall.
    """

    format: Literal["hatchway-bundle"] = "hatchway-bundle"
    version: Literal[1] = 1
    score: Literal["dot product"] = "dot product"
    items: int
    dimension: int
    item_type: Literal["integer", "string"]
    origin: dict[str, str | int | bool]
    index: IndexFacts


@dataclass(frozen=True, eq=False)
class BundleContents:
    """What a bundle is made of.

    Attributes:
        catalogue: the N items; of their columns :data:`KEPT_COLUMNS` are kept.
        vectors: [N, d] item vectors, raw.
        queries: [Q, d] sampled query vectors like those that serving will ask; recall is measured on them.
        weights: the tensors of the query side of the model, by name; none where the item vectors are all there is.
        settings: the model's settings, as JSON would hold them.
        origin: what the bundle is made from, for the manifest; nothing that depends on the clock or on a place.
        rows: the row numbers to be found by the index; all where None.
        encoder: the tensors that place an item by its columns, by name; none where the model reads no columns.
        similar: which items are relists or near-duplicates of which, for a row that shows each thing once.
    """

    catalogue: Catalogue
    vectors: npt.ArrayLike
    queries: npt.ArrayLike
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    origin: Mapping[str, str | int | bool] = field(default_factory=dict)
    rows: npt.ArrayLike | None = None
    encoder: Mapping[str, Tensor] = field(default_factory=dict)
    similar: SimilarItems | None = None


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle on disk, checked against its manifest and open for reading; see :meth:`open`."""

    path: Path
    manifest: BundleManifest

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open the bundle at ``path``, hashing every part.

        Raises:
            ArtefactError: there is none, it is of another version, or a part is missing, cut short or changed.
        """
        path = Path(path)
        settle(path)
        manifest = read_manifest(path, BundleManifest, _REMEDY)
        verify_parts(path, manifest, _REMEDY)
        return cls(path, manifest)

    @property
    def digest(self) -> str:
        """One sha256 in hex that identifies the bundle."""
        return digest(self.manifest)

    @cached_property
    def catalogue(self) -> Catalogue:
        """The items: external ids in row order, and what a page shows."""
        catalogue = Catalogue(pl.read_parquet(self._part("catalogue.parquet"), glob=False))
        self._check("catalogue.parquet", "items", len(catalogue))
        self._check("catalogue.parquet", "item_type", _type_of(catalogue))
        return catalogue

    @cached_property
    def vectors(self) -> Float32:
        """The item vectors, [N, d] float32; mapped from their file where they are large."""
        vectors = read_vectors(self._part("item_vectors.safetensors"))
        self._check("item_vectors.safetensors", "items", len(vectors))
        self._check("item_vectors.safetensors", "dimension", vectors.shape[1])
        return vectors

    @cached_property
    def index(self) -> ExactIndex | IvfIndex:
        """The index over the item vectors."""
        index = load_index(self._part("index.safetensors"), self.vectors)
        if len(index) != self.manifest.index.vectors:
            raise ArtefactError(
                f"{self.path}/index.safetensors has {len(index):,} vectors, the manifest says "
                f"{self.manifest.index.vectors:,}; {_REMEDY}"
            )
        return index

    @cached_property
    def weights(self) -> dict[str, Tensor]:
        """The tensors of the query side of the model, by name."""
        return safetensors.torch.load_file(self._part("weights.safetensors"))

    @cached_property
    def encoder(self) -> dict[str, Tensor]:
        """The tensors that place an item by its columns, by name; none where the bundle has none."""
        return safetensors.torch.load_file(self._part(ENCODER)) if self._has(ENCODER) else {}

    @cached_property
    def similar(self) -> SimilarItems | None:
        """Which items are relists or near-duplicates of which; None where the bundle does not say."""
        if not self._has(SIMILAR):
            return None
        similar = SimilarItems.read(self._part(SIMILAR))
        self._check(SIMILAR, "items", len(similar))
        return similar

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The model's settings."""
        settings: dict[str, Any] = json.loads(self._part("settings.json").read_bytes())
        return settings

    def _check(self, part: str, fact: str, found: int | str) -> None:
        """Compare what a part holds with what the manifest says of it: hashes alone let a wrong word through."""
        said = getattr(self.manifest, fact)
        if said != found:
            raise ArtefactError(f"{self.path}: the manifest says {fact} = {said}, {part} has {found}; {_REMEDY}")

    def _has(self, name: str) -> bool:
        """Say whether the bundle has a part that not every bundle has."""
        return any(part.name == name for part in self.manifest.parts)

    def _part(self, name: str) -> Path:
        path = self.path / name
        if not path.is_file():
            raise ArtefactError(f"{path} is missing; {_REMEDY}")
        return path


def _type_of(catalogue: Catalogue) -> Literal["integer", "string"]:
    return "integer" if catalogue.identifiers.are_integers else "string"


def _own(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors that share no memory, as the file format wants them."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def is_bundle(path: Path) -> bool:
    """Say whether there is a bundle at ``path``, whole or damaged."""
    settle(path)
    try:
        head = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(head, dict) and head.get("format") == "hatchway-bundle"


def write_bundle(target: Path | str, contents: BundleContents, settings: IndexSettings) -> Bundle:
    """Build the index and write the bundle, whole or not at all; a bundle that lies at ``target`` is replaced.

    Raises:
        DataError: the vectors are not one for each item, or not finite, or ``target`` holds something else.
        FailureError: the disk is full.
    """
    target = Path(target)
    if target.exists() and not is_bundle(target) and not (target.is_dir() and not any(target.iterdir())):
        raise DataError(
            f"{target} exists and is no bundle, and is left as it is; name a new folder, or remove it first"
        )
    vectors = checked_vectors(contents.vectors, "item vectors")
    if contents.similar is not None and len(contents.similar) != len(vectors):
        raise DataError(f"the similar items are of {len(contents.similar)} items, the bundle has {len(vectors)}")
    if len(vectors) != len(contents.catalogue):
        raise DataError(f"there are {len(vectors)} item vectors for {len(contents.catalogue)} items; each needs one")
    index, facts = build_index(vectors, contents.queries, settings, contents.rows)
    frame = contents.catalogue.frame
    shown = frame.select("item", *(name for name in KEPT_COLUMNS if name in frame.columns))
    with replacing_folder(target) as folder:
        shown.write_parquet(folder / "catalogue.parquet", compression="zstd", statistics=False)
        safetensors.numpy.save_file({"item_vectors": vectors}, folder / "item_vectors.safetensors")
        safetensors.torch.save_file(_own(contents.weights), folder / "weights.safetensors")
        if contents.encoder:
            safetensors.torch.save_file(_own(contents.encoder), folder / ENCODER)
        if contents.similar is not None:
            contents.similar.write(folder / SIMILAR)
        text = json.dumps(contents.settings, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
        (folder / "settings.json").write_text(text + "\n", encoding="utf-8")
        save_index(folder / "index.safetensors", index, vectors)
        manifest = BundleManifest(
            items=len(vectors),
            dimension=vectors.shape[1],
            item_type=_type_of(contents.catalogue),
            origin=dict(sorted(contents.origin.items())),
            index=facts,
            parts=describe_parts(folder),
        )
        write_manifest(folder, manifest)
    return Bundle(target, manifest)
