"""Objects on Cloud Storage and files on disk behind one small interface.

Comes in: addresses, `gs://bucket/name` or absolute paths. Goes out: bytes, and objects that appear only when they are
complete and are never overwritten: on Cloud Storage with `if_generation_match=0`, on disk through an unnamed file that
gets its name by a hard link (so that a killed process leaves nothing behind).
"""

from __future__ import annotations

import concurrent.futures
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from trainer.errors import DataError, RequestError, StorageError
from trainer.storage.backend import Backend, StoredObject
from trainer.storage.disk import Disk

_PARALLEL = 16

Item = TypeVar("Item")
Result = TypeVar("Result")


class Storage:
    """Chooses the backend by the address. One object serves a whole process and all its threads."""

    def __init__(self) -> None:
        self._disk = Disk()
        self._cloud: Backend | None = None

    def read_object(self, uri: str, generation: int | None = None) -> bytes | None:
        """Return an object's content; None where there is no such object.

        Args:
            uri: Its address.
            generation: Which writing of it; None: the newest. Files have no generations.

        Raises:
            StorageError: Storage did not answer.
        """
        return self._backend(uri).read_object(uri, generation)

    def exists(self, uri: str) -> bool:
        """Return whether there is an object."""
        return self._backend(uri).size(uri) is not None

    def size(self, uri: str) -> int | None:
        """Return an object's bytes; None where there is none."""
        return self._backend(uri).size(uri)

    def sha256(self, uri: str) -> str | None:
        """Return the SHA-256 of an object's content, in hex; None where there is no such object.

        The content is read in pieces: its size does not matter.
        """
        return self._backend(uri).sha256(uri)

    def write_once(self, uri: str, content: bytes) -> bool:
        """Write an object that must not change any more.

        Returns:
            False if there was an object already; it is left as it is.
        """
        with self.scratch(uri) as file:
            with room_for(uri):
                file.write(content)
            return self.publish(uri, file)

    def replace(self, uri: str, content: bytes) -> None:
        """Write an object, over an older one if need be."""
        self._backend(uri).replace(uri, content)

    @contextmanager
    def scratch(self, uri: str) -> Iterator[IO[bytes]]:
        """Open an unnamed file; `publish` gives it its address, leaving the block without that drops it.

        Write to it inside `room_for`.
        """
        file = self._backend(uri).scratch(uri)
        try:
            yield file
        except BaseException:  # whatever ends the block: half a file must not stay open; it is raised again
            with suppress(OSError):  # closing tries once more to write what the disk did not take
                file.close()
            raise
        file.close()

    def publish(self, uri: str, file: IO[bytes]) -> bool:
        """Make a scratch file's content appear under the address, whole; False if there is an object already."""
        with room_for(uri):
            file.flush()
        return self._backend(uri).publish(uri, file)

    def list_objects(self, prefix: str) -> list[StoredObject]:
        """Return the objects whose address starts with `prefix`, sorted by address."""
        return self._backend(prefix).list_objects(prefix)

    def download(self, uri: str, path: Path) -> bool:
        """Copy an object to a local path; False where there is none."""
        return self._backend(uri).download(uri, path)

    def delete_object(self, uri: str) -> None:
        """Remove an object; it may be gone already."""
        self._backend(uri).delete_object(uri)

    def upload_folder(self, folder_path: Path, uri: str) -> None:
        """Copy every file below a local folder to the same place below an address, replacing what is there."""
        files = sorted(path for path in folder_path.rglob("*") if path.is_file())

        def upload(path: Path) -> None:
            self.replace(join_uri(uri, path.relative_to(folder_path).as_posix()), path.read_bytes())

        in_parallel(upload, files)

    def download_folder(self, uri: str, folder_path: Path) -> int:
        """Copy every object below an address to the same place below a local folder.

        Returns:
            How many there were.

        Raises:
            DataError: The name of one leads elsewhere; none is copied.
        """
        prefix = uri.rstrip("/") + "/"
        objects = {
            item.uri: path_below(folder_path, item.uri.removeprefix(prefix)) for item in self.list_objects(prefix)
        }

        def download(item_uri: str) -> None:
            objects[item_uri].parent.mkdir(parents=True, exist_ok=True)
            self.download(item_uri, objects[item_uri])

        in_parallel(download, objects)
        return len(objects)

    def _backend(self, uri: str) -> Backend:
        if uri.startswith("gs://"):
            if self._cloud is None:
                from trainer.storage.gcs import CloudStorage

                self._cloud = CloudStorage()
            return self._cloud
        if uri.startswith("/"):
            return self._disk
        raise RequestError("address", f"{uri!r}", "gs://bucket/name or an absolute path")


@contextmanager
def room_for(uri: str) -> Iterator[None]:
    """Name what the disk says while an object's scratch file is written.

    Raises:
        StorageError: It is full, or broken.
    """
    try:
        yield
    except OSError as error:
        folder = tempfile.gettempdir() if uri.startswith("gs://") else uri.rpartition("/")[0]
        raise StorageError(
            uri,
            f"{error.strerror or error} while its scratch file was written in {folder}",
            "room for it on that disk",
            "Make room and start again: what is finished is kept",
        ) from error


def path_below(folder_path: Path, name: str) -> Path:
    """Return the local place of an object by its name below an address.

    Names of objects may hold anything: `..`, empty parts, a slash in front. None of these is a place below the folder.

    Raises:
        DataError: It is no such name.
    """
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise DataError(
            f"an object named {name!r}",
            "a name that is no place below a folder",
            "names without empty parts, '.' and '..'",
            "Delete the object: nothing of this system writes such a name",
        )
    return folder_path / name


def join_uri(uri: str, *parts: str) -> str:
    """Join an address and the names below it with single slashes."""
    return "/".join([uri.rstrip("/"), *(part.strip("/") for part in parts)])


def in_parallel(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call for every item, several at a time, results in the items' order; the first error ends it.

    For calls that wait for storage, not for computing.
    """
    todo: Sequence[Item] = list(items)
    if len(todo) <= 1:
        return [call(item) for item in todo]
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(_PARALLEL, len(todo))) as pool:
        return list(pool.map(call, todo))
