"""Keeps freed memory in the process, so that a step does not fetch the same pages from the system again and again.

A training step frees and allocates the same tens of megabytes many times. The C library by default hands large blocks
back to the system at once, and every new page then costs a fault; on virtual machines that can be most of a step.
"""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEEP, _LARGEST = 2**31 - 1, 2**25
"""glibc takes at most 32 MiB as the size from which blocks come straight from the system."""


def keep_freed_memory() -> bool:
    """Ask the C library to keep up to 2 GiB of freed memory for the process's own next use.

    For programs, before they allocate much; the library never calls it by itself.

    Returns:
        Whether the C library could be asked (glibc only; elsewhere nothing is done).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return False
    return bool(mallopt(_M_TRIM_THRESHOLD, _KEEP)) and bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST))
