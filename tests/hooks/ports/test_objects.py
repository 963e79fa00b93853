"""Objects as listings have them, and deleting exactly those."""

from __future__ import annotations

import io

import pyarrow
import pyarrow.parquet


def paths_of(found, folder: str) -> list[str]:
    """Paths below a folder."""
    return [item.uri.removeprefix(f"{folder}/") for item in found]


def test_a_listing_is_in_order_of_names(cloud, folder) -> None:
    """Everything below the folder, nothing beside it."""
    paths = ["B", "a/1", "a/2", "a/b/3", "b", "c/4"]
    for path in reversed(paths):
        cloud.artifacts.write_once(f"{folder}/{path}", path.encode())
    cloud.artifacts.write_once(f"{folder}x/5", b"")
    found = list(cloud.objects.walk(folder))
    assert paths_of(found, folder) == paths
    assert [item.bytes for item in found] == [len(path) for path in paths]
    assert all(item.created.utcoffset() is not None for item in found)
    assert paths_of(cloud.objects.directly_in(f"{folder}/a"), folder) == ["a/1", "a/2"]
    assert list(cloud.objects.walk(f"{folder}/nothing")) == cloud.objects.directly_in(f"{folder}/nothing") == []


def test_a_consoles_placeholder_of_a_folder_is_no_object(cloud, folder) -> None:
    """Its name ends with a slash."""
    cloud.artifacts.write_once(f"{folder}/empty/", b"")
    assert list(cloud.objects.walk(folder)) == []


def test_one_object_is_found_as_a_listing_has_it(cloud, folder) -> None:
    """With the generation that is read; or not."""
    cloud.artifacts.write_once(f"{folder}/a", b"1")
    assert [cloud.objects.find_object(f"{folder}/a")] == list(cloud.objects.walk(folder))
    assert cloud.objects.find_object(f"{folder}/a").generation == cloud.artifacts.read_generation(f"{folder}/a")[1]
    assert cloud.objects.find_object(f"{folder}/b") is None


def test_only_what_was_listed_is_deleted(cloud, folder) -> None:
    """What was written again since stays; what is gone already counts as deleted."""
    for name in "abc":
        cloud.artifacts.write_once(f"{folder}/{name}", b"first")
    listed = list(cloud.objects.walk(folder))
    cloud.artifacts.overwrite(f"{folder}/b", b"second", "text/plain")
    assert [(item.object.name, item.gone) for item in cloud.objects.delete(listed)] == [
        ("a", True),
        ("b", False),
        ("c", True),
    ]
    assert cloud.artifacts.read_object(f"{folder}/b") == b"second"
    assert [item.gone for item in cloud.objects.delete([listed[0]])] == [True]
    assert list(cloud.objects.delete([])) == []


def test_an_address_with_a_wildcard_matches_objects(cloud, folder) -> None:
    """It stands for any text, also for none and for slashes; without one it is the object itself."""
    for name in ("a-.csv", "a-1.csv", "a-b/2.csv", "a-1.json", "b-1.csv", "a-[1].csv"):
        cloud.artifacts.write_once(f"{folder}/{name}", b"x")
    assert paths_of(cloud.objects.match(f"{folder}/a-*.csv"), folder) == ["a-.csv", "a-1.csv", "a-[1].csv", "a-b/2.csv"]
    assert paths_of(cloud.objects.match(f"{folder}/b-1.csv"), folder) == ["b-1.csv"]
    assert cloud.objects.match(f"{folder}/a-.csv*.csv") == cloud.objects.match(f"{folder}/c.csv") == []
    assert paths_of(cloud.objects.match(f"{folder}/a-[*"), folder) == ["a-[1].csv"]


def test_parts_of_objects_are_read(cloud, folder) -> None:
    """From a byte, up to another one; what is gone is left out."""
    for name, data in (("a", b"0123456789"), ("b", b"abc")):
        cloud.artifacts.write_once(f"{folder}/{name}", data)
    asked = {f"{folder}/a": (2, 5), f"{folder}/b": (0, 100), f"{folder}/c": (0, 1)}
    assert cloud.artifacts.read_ranges(asked) == {f"{folder}/a": b"234", f"{folder}/b": b"abc"}
    assert cloud.artifacts.read_ranges({}) == {}


def test_a_parquet_file_says_its_columns(cloud, folder) -> None:
    """In its order; what is none says nothing."""
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"b": range(1000), "a": [None] * 1000}), file)
    contents = {"whole": file.getvalue(), "half": file.getvalue()[:-20], "text": b"PAR1", "empty": b""}
    for name, data in contents.items():
        cloud.artifacts.write_once(f"{folder}/{name}", data)
    found = cloud.artifacts.parquet_columns({f"{folder}/{name}": len(data) for name, data in contents.items()})
    assert {uri.rpartition("/")[2]: names for uri, names in found.items() if names} == {"whole": ["b", "a"]}
