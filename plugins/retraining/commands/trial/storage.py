"""Cloud Storage: conditions on generations, what is seen when, and listings. Free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retraining.commands.trial.probes import Probe, Trial
from retraining.commands.trial.record import Fact

WRITES = 20
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, kw_only=True)
class StorageProbes:
    """Rows of Cloud Storage."""

    trial: Trial

    def probes(self) -> Sequence[Probe]:
        """Return them."""
        return (*self._written(), *self._listed_and_read())

    def _written(self) -> Sequence[Probe]:
        return (
            Probe(
                id="GCS-1",
                asked="several writers of one object",
                supposed={
                    "the second of two writers reads the first's": True,
                    "a wrong generation is refused": True,
                    "the right one replaces": True,
                    "a past one is refused": True,
                },
                ask=self.write_in_turns,
            ),
            Probe(
                id="GCS-2",
                asked=f"{WRITES} objects, read and listed at once",
                supposed={"not read": 0, "not listed": 0},
                ask=self.read_at_once,
            ),
            Probe(
                id="GCS-3",
                asked="a write that is repeated, as after an answer that was lost",
                supposed={"the second one finds its own bytes": True, "the object is written once": True},
                ask=self.write_again,
            ),
            Probe(
                id="GCS-4",
                asked="a delete of one generation",
                supposed={"a past one stays": True, "the last one goes": True, "one that is gone counts as gone": True},
                ask=self.delete_a_generation,
            ),
        )

    def _listed_and_read(self) -> Sequence[Probe]:
        return (
            Probe(
                id="GCS-5",
                asked="listings by a pattern and by folder",
                supposed={"names": "a/1.part b/10.part b/2.part", "folders": "a b c"},
                ask=self.list_names,
            ),
            Probe(
                id="GCS-6",
                asked="a range of a compressed object",
                supposed={"it is as stored": True, "so is its size": True},
                ask=self.read_compressed,
            ),
            Probe(
                id="GCS-9",
                asked="a file is copied twice, inside the service",
                supposed={"copied": 1, "again": 0, "it is the same": True},
                ask=self.copy_twice,
            ),
            Probe(
                id="GCS-10",
                asked="the generation that comes with an object's bytes",
                supposed={"bytes": "2", "it is the listed one": True, "it is another than before": True},
                ask=self.read_generation,
            ),
        )

    def write_in_turns(self) -> Mapping[str, Fact]:
        """Write one object under several conditions."""
        artifacts, uri = self.trial.cloud.artifacts, self.trial.uri("one.json")
        first = artifacts.write_once(uri, b'{"writer": 1}')
        second = artifacts.write_once(uri, b'{"writer": 2}')
        _, generation = artifacts.read_generation(uri)
        wrong = artifacts.write_if(uri, b'{"writer": 3}', generation + 1)
        right = artifacts.write_if(uri, b'{"writer": 4}', generation)
        past = artifacts.write_if(uri, b'{"writer": 5}', generation)
        return {
            "the second of two writers reads the first's": second == first,
            "a wrong generation is refused": wrong is None,
            "the right one replaces": right not in (None, generation),
            "a past one is refused": past is None and artifacts.read_object(uri) == b'{"writer": 4}',
        }

    def read_at_once(self) -> Mapping[str, Fact]:
        """Write, read and list again and again."""
        artifacts, folder = self.trial.cloud.artifacts, self.trial.uri("seen")
        unread = unlisted = 0
        for number in range(WRITES):
            uri, data = f"{folder}/{number:03d}.txt", f"{number}".encode()
            artifacts.overwrite(uri, data, "text/plain")
            unread += artifacts.read_object(uri) != data
            unlisted += uri not in artifacts.list_uris(folder)
        return {"not read": unread, "not listed": unlisted}

    def write_again(self) -> Mapping[str, Fact]:
        """Write the same bytes twice, each time as if nothing were there."""
        artifacts, uri, data = self.trial.cloud.artifacts, self.trial.uri("again.json"), b'{"writer": 1}'
        artifacts.write_once(uri, data)
        _, first = artifacts.read_generation(uri)
        second = artifacts.write_once(uri, data)
        _, now = artifacts.read_generation(uri)
        return {"the second one finds its own bytes": second == data, "the object is written once": now == first}

    def delete_a_generation(self) -> Mapping[str, Fact]:
        """Delete a listed object that was written again, then as it is, then once more."""
        cloud, uri = self.trial.cloud, self.trial.uri("deleted.txt")
        cloud.artifacts.overwrite(uri, b"1", "text/plain")
        listed = cloud.objects.find_object(uri)
        cloud.artifacts.overwrite(uri, b"2", "text/plain")
        newer = cloud.objects.find_object(uri)
        if listed is None or newer is None:
            raise LookupError("an object that was just written is not there")
        (past,) = cloud.objects.delete([listed])
        stays = not past.gone and cloud.artifacts.read_object(uri) == b"2"
        (last,) = cloud.objects.delete([newer])
        goes = last.gone and cloud.artifacts.read_object(uri) is None
        (again,) = cloud.objects.delete([newer])
        return {"a past one stays": stays, "the last one goes": goes, "one that is gone counts as gone": again.gone}

    def list_names(self) -> Mapping[str, Fact]:
        """List objects that were written in another order than that of their names."""
        cloud, folder = self.trial.cloud, self.trial.uri("names")
        for name in ("b/2.part", "c/other", "a/1.part", "b/10.part"):
            cloud.artifacts.overwrite(f"{folder}/{name}", b"1", "text/plain")
        names = [each.uri.removeprefix(f"{folder}/") for each in cloud.objects.match(f"{folder}/*.part")]
        folders = [uri.removeprefix(f"{folder}/") for uri in cloud.artifacts.list_folders(folder)]
        return {"names": " ".join(names), "folders": " ".join(folders)}

    def read_compressed(self) -> Mapping[str, Fact]:
        """Read the first bytes of an object that says that it is compressed."""
        uri = self.trial.uri("compressed.txt")
        size = self.trial.calls.objects.write_gzipped(uri, b"one line\n" * 100)
        begins = self.trial.cloud.artifacts.read_ranges({uri: (0, len(GZIP))}).get(uri)
        found = self.trial.cloud.objects.find_object(uri)
        return {"it is as stored": begins == GZIP, "so is its size": found is not None and found.bytes == size}

    def read_generation(self) -> Mapping[str, Fact]:
        """Read an object that was written twice."""
        cloud, uri = self.trial.cloud, self.trial.uri("generation.txt")
        generations = []
        for data in (b"1", b"2"):
            cloud.artifacts.overwrite(uri, data, "text/plain")
            found = cloud.objects.find_object(uri)
            generations.append(None if found is None else found.generation)
        read, generation = cloud.artifacts.read_generation(uri)
        return {
            "bytes": read.decode(),
            "it is the listed one": generation == generations[1],
            "it is another than before": generation != generations[0],
        }

    def copy_twice(self) -> Mapping[str, Fact]:
        """Copy a folder of one file to another one, and once more after the file was written anew."""
        cloud, source, target = self.trial.cloud, self.trial.uri("copied/from"), self.trial.uri("copied/to")
        cloud.artifacts.overwrite(f"{source}/file", b"1", "text/plain")
        copied = cloud.model_files.copy_missing(source, target)
        cloud.artifacts.overwrite(f"{source}/file", b"2", "text/plain")
        again = cloud.model_files.copy_missing(source, target)
        return {
            "copied": copied,
            "again": again,
            "it is the same": cloud.artifacts.read_object(f"{target}/file") == b"1",
        }
