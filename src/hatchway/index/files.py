"""Index files: one safetensors file that says what it is an index of, and is refused where that is something else.

Its header names the kind, the score, N and d, and the sha256 of the item vectors. A flat index is the row numbers that
can be found, since its vectors lie beside it; IVF,SQ8 is what FAISS writes, as bytes.
"""

import hashlib
import json
from pathlib import Path
from typing import Literal

import faiss
import numpy as np
import numpy.typing as npt
import pydantic
import safetensors
import safetensors.numpy

from hatchway.errors import ArtefactError
from hatchway.index.approximate import IvfIndex
from hatchway.index.exact import ExactIndex
from hatchway.index.protocol import Float32, Int64, checked_vectors

_HASHED_AT_ONCE = 1 << 16
_MAPPED_FROM = 1 << 30
"""Item vectors of so many bytes stay in their file, from which the system reads what is looked at."""

_LENGTH_BYTES = 8
_REMEDY = "build the index again"


class IndexHeader(pydantic.BaseModel):
    """What an index file says of itself.

    Attributes:
        kind: ``flat`` or ``ivf-sq8``.
        score: how a query and an item are compared.
        items: N, the item vectors it was built from.
        dimension: d.
        vectors: the sha256 of those vectors.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    format: Literal["hatchway-index"] = "hatchway-index"
    version: Literal[1] = 1
    kind: Literal["flat", "ivf-sq8"]
    score: Literal["dot product"] = "dot product"
    items: int
    dimension: int
    vectors: str


def digest_of(vectors: Float32) -> str:
    """Return the sha256 of [N, d] float32 vectors, in hex, of the numbers as little-endian bytes."""
    hashed = hashlib.sha256()
    for begin in range(0, len(vectors), _HASHED_AT_ONCE):
        hashed.update(np.ascontiguousarray(vectors[begin : begin + _HASHED_AT_ONCE], dtype="<f4").data)
    return hashed.hexdigest()


def read_vectors(path: Path) -> Float32:
    """Read the tensor ``item_vectors`` of a safetensors file, [N, d] float32.

    A large file is not copied into memory but mapped: several processes then share one copy, and what is never looked
    at takes no memory. What somebody might write into the array would stay in the process.

    Raises:
        ArtefactError: the file is missing, cut short, or has no such tensor.
    """
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            if path.stat().st_size < _MAPPED_FROM:
                whole: Float32 = file.get_tensor("item_vectors")
                return whole
        with path.open("rb") as raw:  # opened above, so that the header is known to fit the file
            length = int.from_bytes(raw.read(_LENGTH_BYTES), "little")
            said = json.loads(raw.read(length))["item_vectors"]
    except (OSError, KeyError, safetensors.SafetensorError) as error:
        raise ArtefactError(f"{path} is missing, cut short, or has no item vectors ({error}); {_REMEDY}") from error
    if said["dtype"] != "F32":
        raise ArtefactError(f"{path} has item vectors of type {said['dtype']}; they must be F32; {_REMEDY}")
    begin = _LENGTH_BYTES + length + said["data_offsets"][0]
    mapped: Float32 = np.memmap(path, np.dtype("<f4"), mode="c", offset=begin, shape=tuple(said["shape"]))
    return mapped


def save_index(path: Path, index: ExactIndex | IvfIndex, vectors: npt.ArrayLike) -> None:
    """Write an index to ``path``; equal indexes give equal bytes.

    Args:
        path: the file.
        index: built from ``vectors``.
        vectors: [N, d] item vectors.
    """
    whole = checked_vectors(vectors, "item vectors")
    flat = isinstance(index, ExactIndex)
    header = IndexHeader(
        kind="flat" if flat else "ivf-sq8", items=len(whole), dimension=whole.shape[1], vectors=digest_of(whole)
    )
    tensors: dict[str, npt.NDArray[np.generic]]
    tensors = {"rows": index.rows} if isinstance(index, ExactIndex) else {"faiss": index.to_bytes()}
    safetensors.numpy.save_file(tensors, path, metadata={"hatchway": header.model_dump_json()})


def load_index(path: Path, vectors: npt.ArrayLike) -> ExactIndex | IvfIndex:
    """Read an index file that :func:`save_index` wrote.

    Args:
        path: the file.
        vectors: the [N, d] item vectors that the index was built from.

    Raises:
        ArtefactError: the file is missing, cut short or another kind of file, or an index of other vectors or by
            another score.
    """
    whole = checked_vectors(vectors, "item vectors")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            said = (file.metadata() or {}).get("hatchway")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dict
    except (OSError, safetensors.SafetensorError) as error:
        raise ArtefactError(f"{path} is missing, cut short, or no index file ({error}); {_REMEDY}") from error
    header = _header(path, said)
    found = (header.items, header.dimension)
    if found != whole.shape:
        raise ArtefactError(
            f"{path} is an index of [{header.items}, {header.dimension}] vectors, but the item vectors are "
            f"{list(whole.shape)}: it belongs to others; {_REMEDY}"
        )
    if header.vectors != digest_of(whole):
        raise ArtefactError(
            f"{path} is an index of vectors with sha256 {header.vectors[:12]}…, and the item vectors have another one "
            f"(of other weights, say): it belongs to others; {_REMEDY}"
        )
    if header.kind == "flat":
        rows = _part(path, tensors, "rows")
        _check_rows(path, rows, len(whole))
        return ExactIndex(whole, None if len(rows) == len(whole) else rows)
    written = _part(path, tensors, "faiss")
    try:
        searched = faiss.deserialize_index(written.view(np.uint8))
    except RuntimeError as error:
        raise ArtefactError(f"{path} holds bytes that FAISS cannot read; {_REMEDY}") from error
    if (
        not isinstance(searched, faiss.IndexIVFScalarQuantizer)
        or searched.metric_type != faiss.METRIC_INNER_PRODUCT
        or searched.d != whole.shape[1]
    ):
        raise ArtefactError(
            f"{path} holds a {type(searched).__name__} of {searched.d} numbers; it should be an IVF,SQ8 index by inner "
            f"product of {whole.shape[1]}; {_REMEDY}"
        )
    _check_rows(path, _ids_in_cells(searched), len(whole))
    return IvfIndex(searched, whole)


def _header(path: Path, said: str | None) -> IndexHeader:
    """Read the header, and say what is wrong with one of another kind."""
    if said is None:
        raise ArtefactError(f"{path} is a safetensors file, but no index of Hatchway; {_REMEDY}")
    try:
        return IndexHeader.model_validate_json(said)
    except pydantic.ValidationError as error:
        wrong = error.errors()[0]
        where = ".".join(map(str, wrong["loc"])) or "the header"
        raise ArtefactError(
            f"{path} says {where} = {wrong['input']!r}, which this version of Hatchway does not know; {_REMEDY}"
        ) from None


def _part(path: Path, tensors: dict[str, npt.NDArray[np.generic]], name: str) -> npt.NDArray[np.generic]:
    """Return a part of the file."""
    if name not in tensors:
        raise ArtefactError(f"{path} has no part {name!r}; {_REMEDY}")
    return tensors[name]


def _check_rows(path: Path, rows: npt.NDArray[np.generic], count: int) -> None:
    """Refuse row numbers that the vectors do not have."""
    if rows.dtype != np.int64 or (len(rows) and not 0 <= rows.min() <= rows.max() < count):
        raise ArtefactError(f"{path} has row numbers outside 0..{count - 1}: it belongs to others; {_REMEDY}")


def _ids_in_cells(searched: faiss.IndexIVFScalarQuantizer) -> Int64:
    """Return the row numbers in an IVF index, cell after cell."""
    lists = searched.invlists
    if lists is None:
        return np.empty(0, np.int64)
    cells = range(searched.nlist)
    return np.concatenate([faiss.rev_swig_ptr(lists.get_ids(c), lists.list_size(c)).copy() for c in cells])
