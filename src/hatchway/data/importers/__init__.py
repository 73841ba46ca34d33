"""Importers: public formats and the user's own tables become one store."""

from hatchway.data.importers.intake import ImportSettings
from hatchway.data.importers.lightgcn import import_lightgcn
from hatchway.data.importers.mind import import_mind
from hatchway.data.importers.movielens import import_movielens
from hatchway.data.importers.sequences import import_sequences
from hatchway.data.importers.table import TableSettings, import_table, read_items

__all__ = [
    "ImportSettings",
    "TableSettings",
    "import_lightgcn",
    "import_mind",
    "import_movielens",
    "import_sequences",
    "import_table",
    "read_items",
]
