"""From item rows to buckets: a 64-bit mixing function (splitmix64) with one salt a hash."""

import torch
from torch import Tensor

from hatchway.randomness import stream

MOST_BUCKETS = 2**31
"""Buckets a hash may have: 32 bits of the mixed key are scaled to them in 63-bit arithmetic."""

FIRST_FACTOR, SECOND_FACTOR = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def salts(seed: int, hashes: int) -> Tensor:
    """Return [hashes] int64 salts: far apart, so that hashes of one item row tell nothing of each other."""
    drawn = stream(seed, "frequency", "salts").integers(-(2**63), 2**63 - 1, size=hashes, endpoint=True)
    return torch.from_numpy(drawn)


def buckets_of(items: Tensor, salt: Tensor, buckets: int) -> Tensor:
    """Return the bucket of each item row under each salt.

    Args:
        items: [M] int64 item rows.
        salt: [hashes] int64.
        buckets: H, at most :data:`MOST_BUCKETS`.

    Returns:
        [hashes, M] int64, 0 to H - 1.
    """
    z = items[None, :] + salt[:, None]  # wraps around, as it should
    z = (z ^ _shifted(z, 30)) * _signed(FIRST_FACTOR)
    z = (z ^ _shifted(z, 27)) * _signed(SECOND_FACTOR)
    z = z ^ _shifted(z, 31)
    # The upper half of the bits, scaled to H: unlike a remainder it favours no bucket when H is no power of two.
    return (_shifted(z, 32) * buckets) >> 32


def _shifted(z: Tensor, bits: int) -> Tensor:
    """Shift right, filling with zeros: PyTorch has no unsigned 64-bit arithmetic."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(constant: int) -> int:
    return constant - 2**64
