"""All that decides a night, besides the store and the night before."""

from dataclasses import dataclass
from typing import Any

from hatchway.data.positives import PositivesSettings
from hatchway.evaluation.settings import EvaluationSettings
from hatchway.negatives.settings import NegativesSettings
from hatchway.nightly.settings import NightlySettings
from hatchway.screening.settings import ScreeningSettings
from hatchway.towers.settings import ModelSettings
from hatchway.training.mining.settings import MiningSettings
from hatchway.training.settings import TrainingSettings


@dataclass(frozen=True)
class NightRecipe:
    """The settings that a night reads; each is documented beside its class."""

    seed: int
    positives: PositivesSettings
    model: ModelSettings
    negatives: NegativesSettings
    screening: ScreeningSettings
    mining: MiningSettings
    training: TrainingSettings
    evaluation: EvaluationSettings
    nightly: NightlySettings

    def of(self, *names: str) -> dict[str, Any]:
        """Return some of the settings as JSON can hold them, for the keys of steps."""
        return {name: getattr(self, name).model_dump(mode="json") for name in names}
