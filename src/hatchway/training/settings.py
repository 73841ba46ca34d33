"""How a model is trained."""

from typing import Literal

import pydantic

from hatchway.settings import Settings


class TrainingSettings(Settings):
    """The loop's settings.

    Attributes:
        epochs: passes over the training positives.
        batch: B, positives a step.
        temperature: divides the scores inside the loss.
        learn_temperature: make the temperature a parameter.
        table_rate: learning rate of the tables (row-wise Adagrad).
        table_shrink: weight decay of the tables: a row that is looked up loses this share of itself, times the rate.
        layer_rate: learning rate of everything else (Adam).
        schedule: ``linear`` lowers both rates to 0 over the run, ``constant`` leaves them.
        warmup: share of the steps in which the rates rise from 0.
        checkpoint_steps: a checkpoint every so many steps, and at the end.
        keep_checkpoints: how many are kept.
        validate_epochs: validate after every so many epochs; 0 only at the end. Needs a validation part.
        validate_metric, validate_k: what decides which weights are best, e.g. ndcg at 10.
        auc_pairs: with every validation, and before the first step, measure the AUC at one random negative a positive
            on at most so many positives of training and of validation, for ``hatchway ratio --run``; 0 measures none.
        select: ``best`` keeps the weights of the best validation, ``last`` those at the end.
        divergence: the run stops when the mean loss of 20 steps is above this many times that of the first 20.
        threads: CPU threads of PyTorch; 0 leaves them as they are.
    """

    epochs: int = pydantic.Field(default=10, ge=1)
    batch: int = pydantic.Field(default=4096, ge=1)
    temperature: float = pydantic.Field(default=0.1, gt=0)
    learn_temperature: bool = False
    table_rate: float = pydantic.Field(default=0.1, gt=0)
    table_shrink: float = pydantic.Field(default=0.0, ge=0, lt=1)
    layer_rate: float = pydantic.Field(default=1e-3, gt=0)
    schedule: Literal["linear", "constant"] = "linear"
    warmup: float = pydantic.Field(default=0.0, ge=0, lt=1)
    checkpoint_steps: int = pydantic.Field(default=500, ge=1)
    keep_checkpoints: int = pydantic.Field(default=2, ge=1)
    validate_epochs: int = pydantic.Field(default=1, ge=0)
    validate_metric: Literal["recall", "hit_rate", "ndcg", "mrr", "map"] = "ndcg"
    validate_k: int = pydantic.Field(default=20, ge=1)
    auc_pairs: int = pydantic.Field(default=4096, ge=0)
    select: Literal["best", "last"] = "best"
    divergence: float = pydantic.Field(default=5.0, gt=1)
    threads: int = pydantic.Field(default=0, ge=0)
