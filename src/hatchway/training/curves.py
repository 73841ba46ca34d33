"""What a run writes down while it trains: ``log.jsonl`` for programs, ``curves/`` for TensorBoard."""

import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from hatchway.artefacts.atomic import write_text
from hatchway.how_many.curves import AucPoint
from hatchway.how_many.schedule import BOUND_CAVEAT, information_bound
from hatchway.negatives.ledger import Ledger
from hatchway.negatives.sources import Source
from hatchway.progress import note

_EVERY = 20


class Curves:
    """Writes a line every twenty steps: mean loss, rates, and what the columns and masks were.

    ``columns`` are those of the average row by source, shared and own; ``masked_share`` is the share of them that
    counts for nothing, by reason; ``negatives`` how many are left to the average row, ``rows_without_negatives`` the
    share of rows that have none left and teach nothing. With a schedule, ``k`` is where it stands.

    Args:
        folder: the run folder.
        after: the step that the run continues after; later lines, of a run that was killed, are dropped. 0 is a run
            that begins, again if it was killed early.
        bounds_information: also write ``information_bound``, ln(negatives + 1) − loss, and say once, to the logger and
            to TensorBoard, what it bounds and when.
    """

    def __init__(self, folder: Path, after: int, *, bounds_information: bool = False) -> None:
        self._path = folder / "log.jsonl"
        there = self._path.read_text(encoding="utf-8", errors="replace").splitlines() if self._path.exists() else []
        kept = [line for line in there if after and (step := _step_of(line)) is not None and step <= after]
        write_text(self._path, "".join(line + "\n" for line in kept))
        self._board: Any = SummaryWriter(folder / "curves", purge_step=after + 1)
        self._losses: list[float] = []
        self._columns: defaultdict[str, float] = defaultdict(float)
        self._masked: Counter[str] = Counter()
        self._pairs = 0
        self._rows = 0
        self._alone = 0
        self._k: float | None = None
        self._bounds_information = bounds_information
        if bounds_information:
            note(BOUND_CAVEAT)
            self._board.add_text("information_bound", BOUND_CAVEAT, after)
        self._start = time.monotonic()

    def step(self, step: int, loss: float, rates: Mapping[str, float], ledger: Ledger, k: float | None = None) -> None:
        """Count one step in, and write the line when it is due; ``k`` is where a schedule stood."""
        self._losses.append(loss)
        self._k = k
        rows = len(ledger.positives)
        there = ledger.own_items >= 0
        for source, number in _numbers(ledger.sources).items():
            self._columns[source] += number
        for source, number in _numbers(ledger.own_sources[there]).items():
            self._columns[source] += number / rows
        self._masked += Counter(ledger.masked_counts())
        self._pairs += rows * len(ledger.items) + int(there.sum())
        self._rows += rows
        self._alone += int(ledger.rows_without_negatives.sum())
        if step % _EVERY == 0:
            self._say(step, rates)

    def finish(self, step: int, rates: Mapping[str, float]) -> None:
        """Write the line of the last steps, if they have none yet."""
        if self._losses:
            self._say(step, rates)

    def _say(self, step: int, rates: Mapping[str, float]) -> None:
        steps = len(self._losses)
        loss = sum(self._losses) / steps
        negatives = (self._pairs - self._masked.total()) / self._rows
        figures = {"negatives": negatives, "rows_without_negatives": self._alone / self._rows}
        if self._k is not None:
            figures["k"] = self._k
        if self._bounds_information:
            figures["information_bound"] = information_bound(loss, negatives)
        line = {
            "step": step,
            "loss": loss,
            "rates": dict(rates),
            "columns": {name: number / steps for name, number in self._columns.items()},
            "masked_share": {name: number / max(self._pairs, 1) for name, number in self._masked.items()},
            **figures,
            "seconds": round(time.monotonic() - self._start, 3),
        }
        self._write(line)
        self._board.add_scalar("loss", line["loss"], step)
        for name, rate in rates.items():
            self._board.add_scalar(f"rate/{name}", rate, step)
        for name, share in line["masked_share"].items():  # type: ignore[attr-defined]
            self._board.add_scalar(f"masked/{name}", share, step)
        for name, figure in figures.items():
            self._board.add_scalar(name, figure, step)
        self._losses.clear()
        self._columns.clear()
        self._masked.clear()
        self._pairs = self._rows = self._alone = 0

    def validation(self, step: int, scores: Mapping[str, float]) -> None:
        """Write down the scores of one validation."""
        self._write({"step": step, "validation": dict(scores)})
        for name, score in scores.items():
            self._board.add_scalar(f"validation/{name}", score, step)

    def aucs(self, step: int, point: AucPoint) -> None:
        """Write down the AUCs at one random negative a positive."""
        self._write({"step": step, "auc": point._asdict()})
        for name, value in point._asdict().items():
            self._board.add_scalar(f"auc/{name}", value, step)

    def _write(self, line: Mapping[str, object]) -> None:
        with self._path.open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(line) + "\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._board.close()


def _numbers(sources: Tensor) -> dict[str, int]:
    """Count columns by the lower-case name of their source."""
    kinds, numbers = sources.unique(return_counts=True)
    return {Source(int(k)).name.lower(): int(n) for k, n in zip(kinds, numbers, strict=True)}


def _step_of(line: str) -> int | None:
    """Return the step that a line is of, None where it is no whole line: the last may be cut short."""
    try:
        step = json.loads(line)["step"]
    except (ValueError, TypeError, KeyError):
        return None
    return step if isinstance(step, int) else None
