"""Times of several variants in one process, taken in turns, so that a busy machine is busy for all of them."""

import gc
import time
from collections.abc import Callable, Mapping


def interleaved(
    variants: Mapping[str, Callable[[], object]], rounds: int, warm_up: int = 2, turns: Mapping[str, int] | None = None
) -> dict[str, list[float]]:
    """Return the seconds that each variant took in each round.

    Every round calls every variant, and each round begins with another one, so that none always runs in the wake
    of the same neighbour. Ratios of medians of such times can be compared between machines; the times cannot.

    Args:
        variants: what is timed, by name; each call does the same amount of work.
        rounds: how often.
        warm_up: rounds before that are not timed.
        turns: how many times in a row a variant is called in each round, each of them timed; 1 where nothing is said.
    """
    names = list(variants)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(-warm_up, rounds):
            start = turn % len(names)
            for name in names[start:] + names[:start]:
                for _ in range((turns or {}).get(name, 1)):
                    begin = time.perf_counter()
                    variants[name]()
                    if turn >= 0:
                        seconds[name].append(time.perf_counter() - begin)
    finally:
        if collecting:
            gc.enable()
    return seconds
