"""Objects of Cloud Storage as files of this machine, and back: through Google's own client, never through its files.

In: `gs://` addresses, with one wildcard where the service takes one. Out: local copies for as long as a job needs them,
and objects. What another process wrote below the storage server's back would make its bucket unreadable.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import urlsplit

from localcloud.untyped import Untyped

_TIMEOUT_S = 600


@contextmanager
def staged(uris: Sequence[str], directory: Path, project: str) -> Iterator[list[Path]]:
    """Yield local files of the objects that a load job names; they are gone afterwards.

    Args:
        uris: `gs://` addresses, or a file that was uploaded into the directory.
        directory: Where local copies lie.
        project: Whose storage client to use.

    Raises:
        NotFoundError: an address has no object.
        InvalidQueryError: an address is not one.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        paths: list[Path] = []
        for uri in uris:
            uploaded = Path(uri.removeprefix("file://"))
            if uri.startswith("file://") and uploaded.resolve().parent == directory.resolve():
                paths.append(uploaded)
                continue
            for blob in _find_blobs(uri, project):
                paths.append(Path(folder) / f"{len(paths):012d}")
                blob.download_to_filename(str(paths[-1]), timeout=_TIMEOUT_S)
        yield paths


def _find_blobs(uri: str, project: str) -> list[Untyped]:
    from bqemulator.domain.errors import NotFoundError
    from google.cloud import exceptions

    bucket, name = split(uri)
    client = _client(project)
    try:
        if "*" not in name:
            matching = [blob for blob in [client.bucket(bucket).get_blob(name)] if blob is not None]
        else:  # BigQuery's `*` also stands for slashes; no other character is special
            pattern = name.replace("[", "[[]").replace("?", "[?]")
            blobs = client.list_blobs(bucket, prefix=name.split("*", 1)[0])
            matching = [blob for blob in blobs if fnmatchcase(blob.name, pattern)]
    except exceptions.NotFound:
        matching = []
    if not matching:
        raise NotFoundError(f"Not found: URI {uri}")
    return matching


def text_of(uri: str, project: str) -> str:
    """Return the text of an object.

    Raises:
        NotFoundError: There is none.
        InvalidQueryError: The address is none.
    """
    return "".join(blob.download_as_text(timeout=_TIMEOUT_S) for blob in _find_blobs(uri, project))


def upload(path: Path, uri: str, project: str, content_type: str) -> None:
    """Make an object of a file.

    Raises:
        NotFoundError: there is no such bucket.
    """
    from bqemulator.domain.errors import NotFoundError
    from google.cloud import exceptions

    bucket, name = split(uri)
    blob = _client(project).bucket(bucket).blob(name)
    try:
        blob.upload_from_filename(str(path), content_type=content_type, timeout=_TIMEOUT_S)
    except exceptions.NotFound:
        raise NotFoundError(f"Not found: Bucket {bucket}") from None


def matches(uri: str, project: str) -> bool:
    """Return whether there are objects at an address, which may have a wildcard."""
    from bqemulator.domain.errors import NotFoundError

    try:
        return bool(_find_blobs(uri, project))
    except NotFoundError:
        return False


def split(uri: str) -> tuple[str, str]:
    """Return bucket and name of a `gs://` address.

    Raises:
        InvalidQueryError: it is none, or has more than one wildcard, or one in its bucket.
    """
    from bqemulator.domain.errors import InvalidQueryError

    parts = urlsplit(uri, allow_fragments=False)
    name = uri.removeprefix(f"gs://{parts.netloc}/")
    if parts.scheme != "gs" or not parts.netloc or not name or name == uri or "*" in parts.netloc:
        raise InvalidQueryError(f"Invalid source or destination URI {uri!r}. Expected gs://<bucket>/<object>.")
    if name.count("*") > 1:
        raise InvalidQueryError(f"Invalid URI {uri!r}: it may have one wildcard only.")
    return parts.netloc, name


def _client(project: str) -> Untyped:
    from google.cloud import storage

    return storage.Client(project=project)
