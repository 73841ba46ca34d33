"""Ours, as a process of its own: ``hatchway_loss.py ARRAYS loss|step ROUNDS`` prints the median as JSON."""

import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from loss import Inputs
from step import Ours, workload


def main() -> None:
    """Measure the loss forward and backward, or a whole step."""
    call = Inputs(4_096).hatchway if sys.argv[2] == "loss" else Ours(1_000_000, *workload(1_000_000)).step
    seconds = []
    for turn in range(-3, int(sys.argv[3])):
        begin = time.perf_counter()
        call()
        if turn >= 0:
            seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": statistics.median(seconds)}))


if __name__ == "__main__":
    main()
