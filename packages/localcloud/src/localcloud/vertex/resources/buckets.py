"""Cloud Storage as the local Vertex AI needs it: is it there, and fetch it. Through Google's own client.

Comes in: gs:// addresses. Goes out: answers and local files.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

from google.api_core import exceptions

from localcloud.vertex.resources.clients import Clients
from localcloud.vertex.wire.errors import FailedPrecondition, PermissionDenied, Unavailable

_CHUNK_BYTES = 4 * 1024 * 1024


class Buckets:
    """Reads from Cloud Storage.

    Args:
        clients: Where the storage client comes from.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def exists(self, bucket: str) -> bool:
        """Return whether the bucket exists.

        Raises:
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        try:
            return self._clients.storage().lookup_bucket(bucket, timeout=10) is not None
        except exceptions.Forbidden as error:
            raise PermissionDenied(_denied(error)) from None
        except (exceptions.GoogleAPIError, OSError) as error:
            raise Unavailable(
                f"Cloud Storage does not answer for the bucket {bucket!r}: {error}. Is the local cloud's storage up?"
            ) from error

    def list_paths(self, bucket: str, prefix: str) -> list[str]:
        """Return paths of the objects below a folder, sorted; none when the bucket does not exist.

        Raises:
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        try:
            return sorted(blob.name for blob in self._clients.storage().list_blobs(bucket, prefix=prefix, timeout=30))
        except exceptions.NotFound:
            return []
        except exceptions.Forbidden as error:
            raise PermissionDenied(_denied(error)) from None
        except (exceptions.GoogleAPIError, OSError) as error:
            raise Unavailable(
                f"Cloud Storage does not list gs://{bucket}/{prefix}: {error}. Is the local cloud's storage up?"
            ) from error

    def match_paths(self, bucket: str, pattern: str) -> list[str]:
        """Return paths of the objects that a pattern with wildcards fits (a path without any fits itself), sorted.

        Raises:
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        with _translated(f"list gs://{bucket}/{pattern}"):
            blobs = self._clients.storage().list_blobs(bucket, match_glob=pattern, timeout=30)
            return sorted(blob.name for blob in blobs if not blob.name.endswith("/"))

    def read_lines(self, bucket: str, path: str) -> Iterator[bytes]:
        """Return an object's lines, as they come.

        Raises:
            FailedPrecondition: There is no such object.
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        with _translated(f"give gs://{bucket}/{path}"):
            blob = self._clients.storage().bucket(bucket).blob(path)
            # The client's own reader has no readline: Python would ask it for one byte after the other.
            with io.BufferedReader(blob.open("rb", chunk_size=_CHUNK_BYTES)) as lines:
                yield from lines

    def upload(self, source: Path, bucket: str, path: str) -> None:
        """Write a file as an object.

        Raises:
            FailedPrecondition: The bucket is gone.
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        with _translated(f"take gs://{bucket}/{path}"):
            self._clients.storage().bucket(bucket).blob(path).upload_from_filename(str(source), timeout=120)

    def copy(self, bucket: str, path: str, to_bucket: str, to_path: str) -> None:
        """Copy an object, within Cloud Storage.

        Raises:
            FailedPrecondition: There is no such object, or a bucket is gone.
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        client = self._clients.storage()
        source, target = client.bucket(bucket).blob(path), client.bucket(to_bucket).blob(to_path)
        with _translated(f"copy gs://{bucket}/{path} to gs://{to_bucket}/{to_path}"):
            token, _, _ = target.rewrite(source, timeout=120)
            while token is not None:
                token, _, _ = target.rewrite(source, token=token, timeout=120)

    def download(self, bucket: str, path: str, target: Path) -> None:
        """Fetch one object into a file; the file is there only when it is whole.

        Raises:
            FailedPrecondition: There is no such object.
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(target.name + ".part")
        try:
            self._clients.storage().bucket(bucket).blob(path).download_to_filename(str(partial), timeout=120)
        except exceptions.NotFound:
            partial.unlink(missing_ok=True)
            raise FailedPrecondition(f"The object gs://{bucket}/{path} does not exist. Upload it first.") from None
        except exceptions.Forbidden as error:
            partial.unlink(missing_ok=True)
            raise PermissionDenied(_denied(error)) from None
        except (exceptions.GoogleAPIError, OSError) as error:
            partial.unlink(missing_ok=True)
            raise Unavailable(
                f"Cloud Storage does not give gs://{bucket}/{path}: {error}. Is the local cloud's storage up?"
            ) from error
        partial.replace(target)

    def download_folder(self, bucket: str, prefix: str, target: Path) -> int:
        """Fetch all objects below a folder; gives how many.

        Raises:
            FailedPrecondition: One vanished meanwhile, or the name of one leads elsewhere; then none is fetched.
            PermissionDenied: Vertex AI's service agent may not.
            Unavailable: Storage does not answer.
        """
        folder = prefix.rstrip("/") + "/" if prefix else ""
        paths = [path for path in self.list_paths(bucket, folder) if not path.endswith("/")]
        places = {path: path_below(target, path.removeprefix(folder)) for path in paths}  # all, before the first
        for path, place in places.items():
            self.download(bucket, path, place)
        return len(paths)


@contextlib.contextmanager
def _translated(deed: str) -> Iterator[None]:
    """Turn refusals of Cloud Storage into those of Vertex AI."""
    try:
        yield
    except exceptions.NotFound as error:
        raise FailedPrecondition(f"Cloud Storage does not {deed}: {error.message}") from None
    except exceptions.Forbidden as error:
        raise PermissionDenied(_denied(error)) from None
    except (exceptions.GoogleAPIError, OSError) as error:
        raise Unavailable(f"Cloud Storage does not {deed}: {error}. Is the local cloud's storage up?") from error


def _denied(error: exceptions.Forbidden) -> str:
    return f"Vertex AI Service Agent: {error.message}"


def path_below(folder: Path, name: str) -> Path:
    """Return the local place of an object by its name below a prefix.

    Raises:
        FailedPrecondition: The name has empty parts, `.` or `..`, or begins with a slash: it would lead elsewhere.
    """
    return folder.joinpath(*path_parts(name))


def path_parts(name: str) -> list[str]:
    """Return the parts of an object's name below a prefix.

    Raises:
        FailedPrecondition: As `path_below`.
    """
    parts = name.split("/")
    if "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise FailedPrecondition(
            f"The object name {name!r} is no place below a folder. Expected a name without empty parts, '.' and '..'. "
            "Delete the object."
        )
    return parts
