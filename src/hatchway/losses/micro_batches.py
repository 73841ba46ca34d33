"""Encode a batch a few rows at a time and still use all of it as negatives (gradient caching, Gao et al. 2021).

A contrastive loss needs the vectors of the whole batch at once, but not everything that an encoder computed on the way
to them. So the rows are encoded in micro-batches of which only the vectors stay; the loss is taken on all vectors
together; and on the way back each micro-batch is encoded again and receives the gradient of its vectors. Memory is that
of one micro-batch, the gradient is that of the whole batch, the price is a second forward pass::

    query = in_micro_batches(lambda part: query_encoder(texts[part]), rows=len(texts), size=32)
    items = unique_in_micro_batches(lambda rows: item_encoder(photos[rows]), ledger.items, size=32)
    loss = sampled_softmax(query, items[: len(query)], items, ledger, temperature=0.05)
    loss.backward()

The second pass draws what the first one drew: the global random states of the CPU and of CUDA devices are kept for each
micro-batch and set back, so dropout is the same, and so are those of the generators that are handed in. Layers whose
rows depend on each other (batch normalisation in training) see a micro-batch where they would have seen a batch: those
gradients differ. Weights must not change between the two passes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hatchway.errors import DataError, SettingsError


def in_micro_batches(
    encode: Callable[[slice], Tensor], rows: int, size: int, generators: Sequence[torch.Generator] = ()
) -> Tensor:
    """Encode ``rows`` rows, ``size`` at a time, keeping nothing but the vectors.

    Args:
        encode: returns the vectors, [n, d], of the rows in a slice. It is called once for each slice, and again in the
            backward pass; both calls must do the same.
        rows: B.
        size: rows of a micro-batch; the last one has what is left.
        generators: streams that ``encode`` draws from, beside the global ones; in the second pass each is set to where
            it was in the first, and put back afterwards.

    Returns:
        [B, d], with gradients to all that ``encode`` depends on. Works with every way of asking for them, in a wrapper
        of several devices too (each parameter's gradient is complete before its hooks run).

    Raises:
        SettingsError: ``size`` is below 1.
        DataError: ``encode`` returns another number of vectors than the slice has rows.
    """
    if not size >= 1:
        raise SettingsError(f"the size of a micro-batch is {size}; allowed: 1 row or more")
    parts = [slice(begin, min(begin + size, rows)) for begin in range(0, rows, size)] or [slice(0, 0)]
    return torch.cat([_encoded(encode, part, generators) for part in parts])


def unique_in_micro_batches(
    encode: Callable[[Tensor], Tensor], items: Tensor, size: int, generators: Sequence[torch.Generator] = ()
) -> Tensor:
    """Encode items, each different one once, and return a vector for every place that holds it.

    Args:
        encode: returns the vectors, [n, d], of [n] int64 item rows, as in :func:`in_micro_batches`.
        items: [M] int64 item rows, with repeats.
        size: items of a micro-batch.
        generators: as in :func:`in_micro_batches`.

    Returns:
        [M, d]. Copies of an item share its vector (and its dropout), and their gradients add up.

    Raises:
        SettingsError: ``size`` is below 1.
        DataError: ``encode`` returns another number of vectors than it was given items.
    """
    unique, places = torch.unique(items, return_inverse=True)
    return in_micro_batches(lambda part: encode(unique[part]), len(unique), size, generators)[places]


def _encoded(encode: Callable[[slice], Tensor], part: slice, generators: Sequence[torch.Generator]) -> Tensor:
    """Encode one micro-batch, to be encoded again when its gradient arrives."""
    states: list[Tensor] = []
    generators = [torch.default_generator, *generators]
    if torch.cuda.is_initialized():
        generators += torch.cuda.default_generators

    def run() -> Tensor:
        if not states:
            states.extend(generator.get_state() for generator in generators)
            return encode(part)
        with _rewound(generators, states):
            return encode(part)

    # The form that is not re-entrant: gradients reach parameters and leaves through the ordinary graph. The states are
    # kept here because it keeps those of devices only where it is handed a tensor on them.
    vectors: Tensor = checkpoint(run, use_reentrant=False, preserve_rng_state=False)
    if vectors.dim() != 2 or len(vectors) != part.stop - part.start:
        raise DataError(
            f"encode returned shape {tuple(vectors.shape)} for {part.stop - part.start} rows; allowed: [rows, d]"
        )
    return vectors


@contextmanager
def _rewound(generators: Sequence[torch.Generator], states: Sequence[Tensor]) -> Iterator[None]:
    """Set the generators back to ``states`` for a while."""
    now = [generator.get_state() for generator in generators]
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)
    try:
        yield
    finally:
        for generator, state in zip(generators, now, strict=True):
            generator.set_state(state)
