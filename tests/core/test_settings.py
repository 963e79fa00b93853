"""Reading the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from retraining.core import settings
from retraining.core.errors import SettingsError
from tests.support.refusals import refuses
from tests.support.small_model import ENVIRON


def test_what_is_set_is_read_and_the_rest_has_defaults():
    found = settings.load({**ENVIRON, "PATH": "/bin", "RETRAINING_WATCH_S": "0"})
    assert (found.project, found.bucket, found.watch_s) == ("my-project", "my-retraining", 0)
    assert (found.gcp_conn_id, found.wake_interval_s, found.service_account) == ("google_cloud_default", 60, None)


def test_all_that_is_missing_is_named_at_once():
    with pytest.raises(SettingsError) as caught:
        settings.load({})
    for name in ENVIRON:
        assert f"{name} is not set" in str(caught.value)
    assert "environment variables" in caught.value.way_out


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RETRAINING_PROJECT", "My Project"),
        ("RETRAINING_REGION", "us"),
        ("RETRAINING_BUCKET", "gs://my-retraining"),
        ("RETRAINING_DATASET", "project.retraining"),
        ("RETRAINING_TRAINER_IMAGE", "trainer"),
        ("RETRAINING_SERVICE_ACCOUNT", "trainer"),
        ("RETRAINING_WAKE_INTERVAL_S", "0"),
        ("RETRAINING_WATCH_S", "ten"),
        ("RETRAINING_TRACKING", "vertex,wandb"),
    ],
)
def test_a_malformed_value_is_named_with_an_example(variable, value):
    example = next(item.example for item in settings.SETTINGS.values() if item.variable == variable)
    with pytest.raises(SettingsError, match=f"{variable} is {value!r}; expected something like") as caught:
        settings.load({**ENVIRON, variable: value})
    assert example in str(caught.value)


@pytest.mark.parametrize(
    ("value", "found"), [("", ()), ("vertex", ("vertex",)), ("mlflow , vertex", ("mlflow", "vertex"))]
)
def test_trackers_are_none_one_or_both(value, found):
    assert settings.load({**ENVIRON, "RETRAINING_TRACKING": value}).tracking == found


def test_a_tensorboard_is_of_the_tracker_vertex_and_its_region():
    board = "projects/my-project/locations/{}/tensorboards/123"
    region = ENVIRON["RETRAINING_REGION"]
    environ = {**ENVIRON, "RETRAINING_TRACKING": "vertex", "RETRAINING_TENSORBOARD": board.format(region)}
    assert settings.load(environ).tensorboard == board.format(region)
    with refuses(SettingsError, found=("RETRAINING_TENSORBOARD", "RETRAINING_TRACKING does not name vertex")):
        settings.load({**environ, "RETRAINING_TRACKING": "mlflow"})
    with refuses(SettingsError, found=("RETRAINING_TENSORBOARD is in asia-east1", region)):
        settings.load({**environ, "RETRAINING_TENSORBOARD": board.format("asia-east1")})
    with refuses(SettingsError, found=("RETRAINING_TENSORBOARD is", "tensorboards/123")):
        settings.load({**environ, "RETRAINING_TENSORBOARD": "123"})


def test_a_misspelt_setting_is_named():
    with refuses(SettingsError, found=("RETRAINING_WACH_S", "'RETRAINING_WATCH_S'")):
        settings.load({**ENVIRON, "RETRAINING_WACH_S": "5"})


def test_every_example_is_one_its_own_pattern_takes():
    environ = {item.variable: item.example for item in settings.SETTINGS.values()}
    del environ["RETRAINING_NETWORK_ATTACHMENT"]  # instead of a network
    assert settings.load(environ).service_account == settings.SETTINGS["service_account"].example


@pytest.mark.parametrize("place", ["dags/include", "include"])
def test_include_is_found_in_the_bundle_and_in_the_checkout(tmp_path, place):
    (tmp_path / place / "models").mkdir(parents=True)
    assert settings.include_path(tmp_path) == tmp_path / place


@pytest.mark.parametrize("name", ["ours", " ours "])
def test_a_setting_names_the_folder_of_a_team(tmp_path, monkeypatch, name):
    (tmp_path / "include" / "models").mkdir(parents=True)
    (tmp_path / "ours" / "models").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert settings.include_path(tmp_path, {"RETRAINING_INCLUDE": name}) == tmp_path / "ours"
    monkeypatch.setenv("RETRAINING_INCLUDE", str(tmp_path / "ours"))
    assert settings.include_path() == tmp_path / "ours"


def test_a_folder_without_models_is_named_with_its_setting(tmp_path):
    (tmp_path / "include" / "models").mkdir(parents=True)
    with refuses(SettingsError, where="RETRAINING_INCLUDE", found=str(tmp_path / "gone")):
        settings.include_path(tmp_path, {"RETRAINING_INCLUDE": str(tmp_path / "gone")})


def test_the_softwares_files_are_in_the_package_and_a_teams_come_first(tmp_path):
    name = "regions/hardware.json"
    shipped = settings.data_path(name, tmp_path)
    assert shipped == settings.data_path(name)
    assert shipped.is_relative_to(Path(settings.__file__).parents[1])
    (tmp_path / "regions").mkdir()
    (tmp_path / name).write_text("{}")
    assert settings.data_path(name, tmp_path) == tmp_path / name


def test_without_include_the_message_says_where_it_belongs(tmp_path):
    with pytest.raises(SettingsError, match="dags/include"):
        settings.include_path(tmp_path)
