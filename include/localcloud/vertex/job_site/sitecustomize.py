"""Loaded by every Python of a job before its own code: tells a program that opens `/gcs` that no bucket is there.

On Vertex AI `/gcs/<bucket>` is the bucket; on this machine it would be a folder of its own, whose files nobody finds.
"""

import errno
import os
import sys

_WATCHED = frozenset(("open", "os.mkdir", "os.rename", "os.listdir", "os.scandir", "os.chdir"))


def _refuse_mounts(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _WATCHED or not arguments:
        return
    for named in arguments[:2]:
        path = os.fsdecode(named) if isinstance(named, bytes | os.PathLike) else named
        if isinstance(path, str) and (path == "/gcs" or path.startswith("/gcs/")):
            raise OSError(
                errno.ENOTSUP,
                "the local cloud does not mount buckets below /gcs; use the gs:// address, which TensorFlow and"
                " Google's clients open",
                path,
            )


sys.addaudithook(_refuse_mounts)
