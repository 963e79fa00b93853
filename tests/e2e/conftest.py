"""One laptop system for all end-to-end tests: the bundle as Composer gets it, a small model spec, a real scheduler."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from demo.bundle import change_spec, copy_bundle
from demo.dag_run import MODEL
from demo.system import LaptopSystem
from tests.support.ports import free_port
from tests.support.small_pool import write_pool

POOL = "by-hand"
"""A pool of machines that is open for 18 seconds."""
_STATES: list[Path] = []  # of the local clouds that this process started


@pytest.fixture(scope="session")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaptopSystem]:
    """A running local cloud and Airflow on the bundle's folders, with four weeks of flights per run."""
    base = tmp_path_factory.mktemp("e2e")
    with running_laptop(base, make_bundle(base / "bundle")) as system:
        yield system


@contextlib.contextmanager
def running_laptop(base: Path, dags_path: Path, **changes: Any) -> Iterator[LaptopSystem]:
    """A system on a bundle, for as long as it is used.

    Args:
        base: Its folder.
        dags_path: The bundle's folder of DAG files, from `make_bundle`.
        changes: Other fields of the system.
    """
    system = LaptopSystem(
        state_path=base / "localcloud",
        airflow_home_path=base / "airflow",
        port=free_port(),
        dags_path=dags_path,
        plugins_path=dags_path.parent / "plugins",
        environment_path=Path(sys.prefix),  # the newest Airflow's, or the oldest's
        **changes,
    )
    before = dict(os.environ)
    _share_authority(system.state_path)
    try:
        system.start()
        yield system
    finally:
        system.stop()
        os.environ.clear()
        os.environ.update(before)


def _share_authority(state_path: Path) -> None:
    """Give a local cloud the authority of this process's first one: gRPC reads its roots once per process."""
    if _STATES:
        state_path.mkdir(parents=True)
        for name in ("authority.key", "authority.pem"):
            shutil.copy(_STATES[0] / name, state_path)
    _STATES.append(state_path)


def make_bundle(path: Path, **deployment: str) -> Path:
    """Copy what Composer's bucket gets; return its folder of DAG files.

    Args:
        path: Where to.
        deployment: Changes of that section of the model's file.
    """
    dags_path = copy_bundle(path)
    write_pool(dags_path / "include", name=POOL, opens=None, hours=0.005, drain_hours=0)
    change_spec(dags_path, MODEL, lambda spec: shrink(spec, deployment))
    return dags_path


def shrink(spec: dict[str, Any], deployment: Mapping[str, str]) -> None:
    """Make a model's night short: four weeks of flights, few epochs, gates that pass what learnt anything."""
    spec["data"] |= {"window_days": 28, "test_days": 5}
    spec["data"]["checks"]["min_rows"] = 1000
    spec["training"]["epochs"] = 15
    spec["evaluation"]["min_value"] = 0.5
    spec["evaluation"]["promote"] = {
        "min_gain": -1.0,
        "max_loss_from_best": 1.0,
        "confidence": 0.95,
        "max_slice_loss": 1.0,
        "min_examples": 100,
        "below_reference": True,  # it is trained on few days
    }
    spec["deployment"] |= deployment
    spec["schedule"] = "0 3 * * *"
    spec["monitoring"] |= {"cooldown_hours": 24}
