"""Hatchway: the negatives behind embedding retrieval, drawn, corrected, filtered and explained.

The names of the whole job stand here, in the order of the work: ``import_table`` (and the importers of public formats),
``train_run``, ``evaluate_run``, ``write_report``, ``index_run``, then ``Recommender`` or ``create_app``. They load when
they are first used, so that ``import hatchway`` costs nothing. Everything else is in the module of its noun.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hatchway.config import RunSettings, load_recipe
    from hatchway.data.importers import (
        ImportSettings,
        TableSettings,
        import_lightgcn,
        import_mind,
        import_movielens,
        import_sequences,
        import_table,
    )
    from hatchway.data.store import Store
    from hatchway.errors import HatchwayError
    from hatchway.evaluation.result import Evaluation
    from hatchway.how_many.estimator import Ratio, ratio
    from hatchway.index.build import IndexSettings
    from hatchway.index.bundle import Bundle
    from hatchway.job import evaluate_run, index_run, open_bundle, train_run
    from hatchway.report.page import write_report
    from hatchway.serving.app import create_app
    from hatchway.serving.recommender import Recommender
    from hatchway.simulation.settings import MarketSettings
    from hatchway.simulation.writing import simulate
    from hatchway.training.run_folder import RunFolder

__version__ = "0.1.0"

__all__ = [
    "Bundle",
    "Evaluation",
    "HatchwayError",
    "ImportSettings",
    "IndexSettings",
    "MarketSettings",
    "Ratio",
    "Recommender",
    "RunFolder",
    "RunSettings",
    "Store",
    "TableSettings",
    "create_app",
    "evaluate_run",
    "import_lightgcn",
    "import_mind",
    "import_movielens",
    "import_sequences",
    "import_table",
    "index_run",
    "load_recipe",
    "open_bundle",
    "ratio",
    "simulate",
    "train_run",
    "write_report",
]

# Where each name is defined; a test holds this, __all__ and the imports above together.
_HOMES = {
    "config": ("RunSettings", "load_recipe"),
    "data.importers": (
        "ImportSettings",
        "TableSettings",
        "import_lightgcn",
        "import_mind",
        "import_movielens",
        "import_sequences",
        "import_table",
    ),
    "data.store": ("Store",),
    "errors": ("HatchwayError",),
    "evaluation.result": ("Evaluation",),
    "how_many.estimator": ("Ratio", "ratio"),
    "index.build": ("IndexSettings",),
    "index.bundle": ("Bundle",),
    "job": ("evaluate_run", "index_run", "open_bundle", "train_run"),
    "report.page": ("write_report",),
    "serving.app": ("create_app",),
    "serving.recommender": ("Recommender",),
    "simulation.settings": ("MarketSettings",),
    "simulation.writing": ("simulate",),
    "training.run_folder": ("RunFolder",),
}
_HOME_OF = {name: f"hatchway.{home}" for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hatchway' has no attribute {name!r}; it has {', '.join(__all__)}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
