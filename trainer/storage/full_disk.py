"""A full disk behind an error: a job that is started again on the same machine fills it again.

Comes in: an error. Goes out: what to say and do, or None.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator

from trainer.errors import NEW_ATTEMPT, DiskFull

_FULL = (errno.ENOSPC, errno.EDQUOT)
_WORDS = "No space left on device"  # of TensorFlow's file systems, which keep no errno


def full_disk(error: BaseException) -> DiskFull | None:
    """Return the error to end with where a full disk is behind another one, at whatever remove; None: none is."""
    if not any(_is_full(each) for each in _chain(error)):
        return None
    folder = tempfile.gettempdir()
    usage = shutil.disk_usage(folder)
    return DiskFull(
        f"disk of {folder}",
        f"no space left, {usage.used / 1e9:.1f} of {usage.total / 1e9:.1f} GB are taken ({type(error).__name__})",
        "room for the shards, the checkpoints and the model",
        f"Give the machines a larger disk, training.cluster.disk_gb in the model's file. {NEW_ATTEMPT}",
    )


def _is_full(error: BaseException) -> bool:
    return (isinstance(error, OSError) and error.errno in _FULL) or _WORDS in str(error)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
