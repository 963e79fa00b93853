"""Files on disk as a backend of `trainer.storage`: folders appear as needed, files appear when complete."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import IO

from trainer.errors import StorageError
from trainer.storage.backend import StoredObject, require_small, sha256_of

_UNFINISHED = ".unfinished-"
"""How the names of files begin that `replace` writes: a process that dies there leaves one, which is no object."""


class Disk:
    """Files; folders appear as needed."""

    def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
        """Return the content; None where there is no such file."""
        del generation  # files have none
        try:
            require_small(uri, Path(uri).stat().st_size)
            return Path(uri).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _disk_error(uri, error) from error

    def size(self, uri: str) -> int | None:
        """Return the bytes of the file; None where there is none."""
        path = Path(uri)
        return path.stat().st_size if path.is_file() else None

    def sha256(self, uri: str) -> str | None:
        """Return the content's SHA-256 in hex; None where there is no such file."""
        try:
            with Path(uri).open("rb") as file:
                return sha256_of(file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _disk_error(uri, error) from error

    def publish(self, uri: str, file: IO[bytes]) -> bool:
        """Give the unnamed file its name; False if the name is taken."""
        try:
            # Only with a folder's descriptor does Python call linkat(2), which follows the link to the unnamed file.
            os.link(f"/proc/self/fd/{file.fileno()}", uri, src_dir_fd=file.fileno(), follow_symlinks=True)
        except FileExistsError:
            return False
        except OSError as error:
            raise _disk_error(uri, error) from error
        return True

    def replace(self, uri: str, content: bytes) -> None:
        """Write beside and rename over."""
        path = Path(uri)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_UNFINISHED)
            beside = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                beside.chmod(0o644)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise _disk_error(uri, error) from error

    def download(self, uri: str, path: Path) -> bool:
        """Copy the file; False where there is none."""
        content = self.read_object(uri)
        if content is not None:
            path.write_bytes(content)
        return content is not None

    def list_objects(self, prefix: str) -> list[StoredObject]:
        """Return the files whose path starts with `prefix`."""
        folder = Path(prefix if prefix.endswith("/") else prefix.rpartition("/")[0] or "/")
        files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(_UNFINISHED))
        return sorted(
            (StoredObject(uri=str(path), bytes=path.stat().st_size) for path in files if str(path).startswith(prefix)),
            key=lambda item: item.uri,
        )

    def delete_object(self, uri: str) -> None:
        """Remove the file."""
        Path(uri).unlink(missing_ok=True)

    def scratch(self, uri: str) -> IO[bytes]:
        """Open an unnamed file on the same file system, which a link can name later."""
        folder = Path(uri).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o644), "w+b")
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EISDIR):  # a file system without unnamed files
                return tempfile.NamedTemporaryFile("w+b", dir=folder, prefix=".scratch-")
            raise _disk_error(uri, error) from error


def _disk_error(uri: str, error: OSError) -> StorageError:
    return StorageError(
        uri, f"{error.strerror or error}", "a folder that can be written and read", "Mend it and start again"
    )
