"""What a softmax over sampled negatives costs, beside the softmax over the whole catalogue.

Costs are counted in multiply-adds of the scores (one dot product of d numbers is d of them), which is what grows with
the number of columns; the towers' own passes are counted apart, as how many items must be embedded.
"""

from dataclasses import dataclass

from pydantic import Field

from hatchway.settings import Settings


class Workload(Settings):
    """One training batch, as far as its cost depends on it.

    Attributes:
        catalogue: N, how many items there are.
        dimension: d, the length of a vector.
        batch: B, the positives in a batch.
        uniform: U, negatives drawn once a batch and shared by all its rows.
        hard: H, negatives mined for each positive and seen by its row alone.
    """

    catalogue: int = Field(default=20_000_000, ge=1)
    dimension: int = Field(default=64, ge=1)
    batch: int = Field(default=4096, ge=1)
    uniform: int = Field(default=1000, ge=0)
    hard: int = Field(default=2, ge=0)


@dataclass(frozen=True)
class Cost:
    """What one batch of a :class:`Workload` costs. Whole numbers are exact.

    Attributes:
        full_example: multiply-adds of the softmax over the whole catalogue, one row: N·d.
        full_batch: the same for all rows: N·d·B.
        in_batch: every row against every row's positive: B·B·d.
        with_shared: and against the shared draws: B·(B + U)·d.
        with_hard: and each row against its own mined columns: B·(B + U + H)·d.
        with_hard_shared: if every row saw every row's mined columns instead: B·(B + U + B·H)·d.
        in_batch_negatives: negatives of one row from the other rows: B − 1.
        easy_negatives: these and the shared draws: B − 1 + U.
        hard_negatives: H.
        extra_item_passes: items embedded beside the positives: U + B·H.
        logit_bytes: the logits of the batch in float32, all at once: 4·B·(B + U + H).
        full_logit_bytes: the same over the whole catalogue: 4·B·N.
    """

    full_example: int
    full_batch: int
    in_batch: int
    with_shared: int
    with_hard: int
    with_hard_shared: int
    in_batch_negatives: int
    easy_negatives: int
    hard_negatives: int
    extra_item_passes: int
    extra_item_passes_ratio: float
    logit_bytes: int
    full_logit_bytes: int

    def cheaper(self, multiply_adds: int) -> float:
        """Return how many times cheaper ``multiply_adds`` is than the full softmax of the batch."""
        return self.full_batch / multiply_adds

    @property
    def easy_per_hard(self) -> float | None:
        """Easy negatives for each hard one, or None where no hard ones are mined."""
        return self.easy_negatives / self.hard_negatives if self.hard_negatives else None


def cost_of(workload: Workload) -> Cost:
    """Return what one batch costs.

    >>> cost_of(Workload(catalogue=1000, dimension=8, batch=10, uniform=5, hard=1)).with_shared
    1200
    """
    n, d, b = workload.catalogue, workload.dimension, workload.batch
    u, h = workload.uniform, workload.hard
    passes = u + b * h
    return Cost(
        full_example=n * d,
        full_batch=n * d * b,
        in_batch=b * b * d,
        with_shared=b * (b + u) * d,
        with_hard=b * (b + u + h) * d,
        with_hard_shared=b * (b + u + b * h) * d,
        in_batch_negatives=b - 1,
        easy_negatives=b - 1 + u,
        hard_negatives=h,
        extra_item_passes=passes,
        extra_item_passes_ratio=passes / b,
        logit_bytes=4 * b * (b + u + h),
        full_logit_bytes=4 * b * n,
    )


def in_words(count: int) -> str:
    """Write a large count as people say it.

    >>> [in_words(count) for count in (950, 84_000, 1_280_000_000, 5_242_880_000_000)]
    ['950', '84.0 thousand', '1.28 billion', '5.24 trillion']
    """
    for size, word in ((10**15, "quadrillion"), (10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if count >= size:
            return f"{count / size:#.3g} {word}"
    return f"{count / 1000:#.3g} thousand" if count >= 1000 else str(count)
