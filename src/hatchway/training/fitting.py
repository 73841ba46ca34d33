"""A model's settings held against the log that it will learn from."""

from hatchway.data.log import Log
from hatchway.errors import SettingsError
from hatchway.progress import note
from hatchway.towers.settings import ContextSettings, ModelSettings


def fitting_model(settings: ModelSettings, log: Log) -> ModelSettings:
    """Switch off the part of the context tower that the log has nothing for, and say so.

    Raises:
        SettingsError: the tower would be left with nothing to read, or would learn from what was later.
    """
    if settings.kind == "context" and settings.context.history_of == "others" and log.engagements.times is not None:
        raise SettingsError(
            "model.context.history_of is 'others', but this log has times: a row's history would hold what happened "
            "after it; use 'before'"
        )
    if settings.kind != "context" or not settings.context.text or log.engagements.query_texts is not None:
        return settings
    note("query text: the log has none (column query), so the context tower reads none")
    without = settings.context.model_dump() | {"text": False}
    return settings.model_copy(update={"context": ContextSettings.parse(without)})
