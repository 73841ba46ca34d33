"""Named, independent random streams from one seed.

Nothing in Hatchway touches global random state. Whoever draws says for what, and gets a stream of its own:
``stream(seed, "uniform", epoch, step)`` gives the same numbers wherever and whenever it is called, so a resumed run
draws the negatives that the run without interruption would have drawn, and no state of a generator needs saving.
"""

import hashlib

import numpy as np
import torch


def _entropy(seed: int, path: tuple[str | int, ...]) -> int:
    """Hash a seed and a path to 128 bits; each part carries its type, so ``("1",)`` and ``(1,)`` are two streams."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (seed, *path):
        kind = b"s" if isinstance(part, str) else b"i"
        text = str(part).encode()
        digest.update(kind + len(text).to_bytes(4, "little") + text)
    return int.from_bytes(digest.digest(), "little")


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """Return the NumPy stream named by ``path`` under ``seed``.

    Args:
        seed: the run's one seed.
        path: names and numbers that say what the stream is for, e.g. ``"shuffle", epoch``.

    >>> bool(stream(7, "shuffle", 0).integers(100) == stream(7, "shuffle", 0).integers(100))
    True
    """
    return np.random.Generator(np.random.PCG64(_entropy(seed, path)))


def torch_stream(seed: int, *path: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return the PyTorch stream named by ``path`` under ``seed``, on ``device``."""
    generator = torch.Generator(device=device)
    generator.manual_seed(_entropy(seed, path) & (2**63 - 1))
    return generator
