"""Training curves that the estimate is averaged over: simulated, or measured as AUCs at one negative a positive."""

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hatchway.errors import DataError, FailureError, SettingsError
from hatchway.how_many.gaussians import Floats


class AucPoint(NamedTuple):
    """The AUCs of one moment of training, at one negative a positive."""

    training: float
    validation: float


def simulated_means(label_mean: float) -> Floats:
    """Return the model's means over a simulated training, [121]: label_mean·(1 − e^−t) at equal points of t in [0, 3].

    The optimum is flat, and depends on how the average is taken: with the exact integral it is 5 at a mean of 1, with
    these points, which include both ends, the published 4.
    """
    return label_mean * (1 - np.exp(-np.linspace(0.0, 3.0, 121)))


def auc(positive_scores: ArrayLike, negative_scores: ArrayLike) -> float:
    """Return the AUC at one negative a positive: how often a positive scores above its negative, ties counting half.

    Args:
        positive_scores: [n] scores of positives, n ≥ 1.
        negative_scores: [n] the score of one random negative for each, under the same query.

    Raises:
        FailureError: a score is NaN.

    >>> auc([3.0, 1.0, 2.0, 0.0], [1.0, 2.0, 2.0, -1.0])
    0.625
    """
    positive, negative = np.asarray(positive_scores), np.asarray(negative_scores)
    if positive.shape != negative.shape or positive.ndim != 1 or not len(positive):
        raise ValueError(
            f"one negative score for each positive is needed, got shapes {positive.shape} and {negative.shape}"
        )
    if np.isnan(positive).any() or np.isnan(negative).any():
        raise FailureError("a score is NaN, so there is no AUC; the model has diverged")
    return float((positive > negative).mean() + 0.5 * (positive == negative).mean())


def before_overfitting(points: Sequence[AucPoint]) -> list[AucPoint]:
    """Return the points up to the (first) best validation AUC.

    Raises:
        SettingsError: there is no point, or an AUC is not from 0 to 1.
    """
    if not points:
        raise SettingsError("the measured curve has no point; it needs pairs of a training and a validation AUC")
    for number, point in enumerate(points, start=1):
        if not (0 <= point.training <= 1 and 0 <= point.validation <= 1):  # NaN too
            raise SettingsError(f"point {number} of the measured curve is {tuple(point)}; an AUC lies from 0 to 1")
    best = max(range(len(points)), key=lambda at: points[at].validation)
    return list(points[: best + 1])


def read_run(run: Path) -> list[AucPoint]:
    """Read the AUCs that a run wrote into its ``log.jsonl`` while it trained.

    Raises:
        DataError: there is no run, or it measured none.
    """
    path = run / "log.jsonl"
    if not path.is_file():
        raise DataError(f"{run} is not a run that has begun to train (it has no log.jsonl); name a run folder")
    points = _of_lines(path)
    if not points:
        raise DataError(
            f"{path} has no AUCs; they are measured with every validation, so the run needs a validation part "
            "(split.protocol) and training.auc_pairs above 0 - or give --auc"
        )
    return points


def read_points(path: Path) -> list[AucPoint]:
    """Read measured AUCs from a file.

    Args:
        path: ``.csv`` with the columns ``training`` and ``validation`` (others are passed over), ``.json`` with a list
            of pairs or of objects with these keys, or ``.jsonl`` as a run writes it; oldest first.

    Raises:
        DataError: the file cannot be read, or is none of these.
    """
    try:
        if path.suffix == ".jsonl":
            points = _of_lines(path)
        elif path.suffix == ".json":
            points = [_point(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
        else:
            with path.open(encoding="utf-8-sig", newline="") as handle:
                points = [_point(row) for row in csv.DictReader(handle)]
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name a file of AUCs") from None
    except (ValueError, KeyError, TypeError, csv.Error):
        raise DataError(
            f"{path}: is no list of AUCs; write a CSV with the columns training and validation, or a JSON list of "
            "pairs, e.g. [[0.70, 0.66], [0.75, 0.70]]"
        ) from None
    if not points:
        raise DataError(f"{path}: has no point; it needs at least one pair of a training and a validation AUC")
    return points


def _of_lines(path: Path) -> list[AucPoint]:
    """Return the AUCs of a log's lines; a last line that was cut short is passed over."""
    points = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and "auc" in entry:
            points.append(_point(entry["auc"]))
    return points


def _point(entry: Any) -> AucPoint:
    """Take a point from a pair or from an object."""
    if not isinstance(entry, dict | list):
        raise TypeError(entry)
    pair = (entry["training"], entry["validation"]) if isinstance(entry, dict) else tuple(entry)
    if len(pair) != 2 or any(isinstance(part, bool) for part in pair):
        raise ValueError(entry)
    training, validation = (float(part) for part in pair)
    if math.isnan(training) or math.isnan(validation):
        raise ValueError(entry)
    return AucPoint(training, validation)
