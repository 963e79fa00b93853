"""Documents: written once, compared and set, listed by name."""

from __future__ import annotations


def test_write_once_keeps_the_first_bytes(cloud, folder) -> None:
    """The second writer gets what the first one stored."""
    assert cloud.artifacts.write_once(f"{folder}/a.json", b"first") == b"first"
    assert cloud.artifacts.write_once(f"{folder}/a.json", b"second") == b"first"
    assert cloud.artifacts.read_object(f"{folder}/a.json") == b"first"


def test_overwrite_replaces(cloud, folder) -> None:
    """For what is derived; each time it is another generation."""
    generations = set()
    for text in (b"1", b"2", b"2"):
        cloud.artifacts.overwrite(f"{folder}/page.html", text, "text/html")
        stored, generation = cloud.artifacts.read_generation(f"{folder}/page.html")
        assert stored == text
        generations.add(generation)
    assert len(generations) == 3


def test_what_is_missing_is_none(cloud, folder) -> None:
    """An object that is not there is an answer, not an error."""
    assert cloud.artifacts.read_object(f"{folder}/none.json") is None
    assert not cloud.artifacts.exists(f"{folder}/none.json")
    assert cloud.artifacts.read_generation(f"{folder}/none.json") == (b"", 0)
    assert cloud.artifacts.list_uris(folder) == cloud.artifacts.list_folders(folder) == []


def test_an_empty_object_is_read(cloud, folder) -> None:
    """As no bytes, which is not the same as no object."""
    cloud.artifacts.overwrite(f"{folder}/empty", b"", "text/plain")
    assert cloud.artifacts.read_object(f"{folder}/empty") == b""
    assert cloud.artifacts.read_generation(f"{folder}/empty")[1] > 0
    assert cloud.artifacts.existing([f"{folder}/none", f"{folder}/empty"]) == [f"{folder}/empty"]


def test_several_are_read_in_the_given_order_without_the_missing(cloud, folder) -> None:
    """Whoever listed them may be late."""
    for name in "abc":
        cloud.artifacts.write_once(f"{folder}/{name}", name.encode())
    uris = [f"{folder}/{name}" for name in "cxa"]
    assert cloud.artifacts.read_many(uris) == [b"c", b"a"]
    assert list(cloud.artifacts.read_some(uris).items()) == [(f"{folder}/c", b"c"), (f"{folder}/a", b"a")]
    assert cloud.artifacts.existing(uris) == [f"{folder}/c", f"{folder}/a"]
    assert cloud.artifacts.read_some([]) == {}
    assert cloud.artifacts.read_many([]) == cloud.artifacts.existing([]) == []


def test_an_object_is_replaced_only_where_nobody_else_did(cloud, folder) -> None:
    """Compare and set by generation; the own write is recognised when its answer got lost."""
    uri = f"{folder}/state.json"
    assert cloud.artifacts.write_if(uri, b"too early", 7) is None
    first = cloud.artifacts.write_if(uri, b"1", 0)
    assert first
    assert cloud.artifacts.read_generation(uri) == (b"1", first)
    assert cloud.artifacts.write_if(uri, b"another's", 0) is None
    second = cloud.artifacts.write_if(uri, b"2", first)
    assert cloud.artifacts.write_if(uri, b"2", first) == second != first
    assert cloud.artifacts.write_if(uri, b"3", first) is None
    assert cloud.artifacts.read_generation(uri) == (b"2", second)


def test_an_object_that_is_written_again_after_its_end_is_another(cloud, folder) -> None:
    """No generation comes twice."""
    uri = f"{folder}/state.json"
    first = cloud.artifacts.write_if(uri, b"1", 0)
    list(cloud.objects.delete([cloud.objects.find_object(uri)]))
    assert cloud.artifacts.write_if(uri, b"2", first) is None
    assert cloud.artifacts.write_if(uri, b"2", 0) not in (None, first)


def test_a_listing_is_bounded_and_sorted(cloud, folder) -> None:
    """`start` is in, `end` is out, `suffix` filters; other folders are left out."""
    for path in ("2013-01-03/f/span.json", "2013-01-01/f/span.json", "2013-01-02/f/x.gz", "2013-01-02/f/span.json"):
        cloud.artifacts.write_once(f"{folder}/{path}", b"{}")
    cloud.artifacts.write_once(f"{folder}x/2013-01-01/f/span.json", b"{}")
    found = cloud.artifacts.list_uris(folder, start="2013-01-01", end="2013-01-03", suffix="/span.json")
    assert found == [f"{folder}/2013-01-01/f/span.json", f"{folder}/2013-01-02/f/span.json"]
    assert len(cloud.artifacts.list_uris(folder)) == 4


def test_folders_are_listed_without_what_is_in_them(cloud, folder) -> None:
    """Sorted, before `end`; a file beside them is none."""
    for path in ("b/x/1", "a/1", "c/1", "note.txt"):
        cloud.artifacts.write_once(f"{folder}/{path}", b"{}")
    assert cloud.artifacts.list_folders(folder) == [f"{folder}/{name}" for name in "abc"]
    assert cloud.artifacts.list_folders(folder, end="c") == [f"{folder}/{name}" for name in "ab"]


def test_a_models_digest_is_that_of_its_files(cloud, folder) -> None:
    """As the trainer's `digest_folder` has it: names and contents of all files, in order of names."""
    digest = "ad258febbdf880da4d157eb7acb5254edc62e74b90ee9229f97676ad814dbac4"  # also in tests/trainer/training
    assert cloud.model_files.digest(f"{folder}/model") is None
    for name, content in (("saved_model.pb", b"graph"), ("variables/variables.index", b""), ("assets/a.txt", b"1")):
        cloud.artifacts.write_once(f"{folder}/model/{name}", content)
    cloud.artifacts.write_once(f"{folder}/model_of_another/saved_model.pb", b"x")
    assert cloud.model_files.digest(f"{folder}/model") == digest


def test_time_passes_where_somebody_waits(cloud) -> None:
    """In UTC, and never backwards."""
    now, began = cloud.clock.now(), cloud.clock.monotonic()
    cloud.clock.sleep(0.01)
    assert now.utcoffset().total_seconds() == 0
    assert cloud.clock.now() > now
    assert cloud.clock.monotonic() >= began + 0.01


def test_a_cloud_says_where_it_is(cloud) -> None:
    """The environment's bucket is the settings' own."""
    assert cloud.environment.bucket == cloud.settings.bucket
    assert cloud.environment.owns(cloud.environment.labels, "")
