"""Every error that Hatchway raises on purpose, in one tree.

::

    HatchwayError
    ├── UsageError              the call, a setting or the input can be mended by the user   (exit 2)
    │   ├── SettingsError       a settings file or value is wrong
    │   ├── DataError           an input file, table or store cannot be used as it is
    │   └── UnknownIdError      an external id is not in the catalogue or the log
    ├── FailureError            the work was right but could not be finished                  (exit 3)
    │   ├── ArtefactError       something on disk is missing, cut short, or not what its manifest says
    │   ├── DivergedError       the loss became NaN or ran away
    │   └── MissingExtraError   an optional part is not installed
    └── GateRefusedError        a gate looked at the result and refused it                    (exit 4)

A message names the value received, what is allowed, and the remedy.
"""


class HatchwayError(Exception):
    """The root: catch it to catch everything that Hatchway raises on purpose."""

    exit_code = 3


class UsageError(HatchwayError):
    """The call, a setting or the input can be mended by the user."""

    exit_code = 2


class SettingsError(UsageError):
    """A settings file or value is wrong."""


class DataError(UsageError):
    """An input file, table or store cannot be used as it is."""


class UnknownIdError(UsageError):
    """An external id is not in the catalogue or the log."""


class FailureError(HatchwayError):
    """The work was right but could not be finished."""


class ArtefactError(FailureError):
    """Something on disk is missing, cut short, or not what its manifest says."""


class DivergedError(FailureError):
    """The loss became NaN or ran away."""


class MissingExtraError(FailureError):
    """An optional part is not installed; the message has the command that installs it."""


class GateRefusedError(HatchwayError):
    """A gate looked at the result and refused it; nothing was published."""

    exit_code = 4
