"""The system of this checkout: its environments, its DAGs, and the demonstration's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from demo.checkout import CLOUD_CONFIG_PATH, PACKAGES_PATH, REPOSITORY_PATH
from retraining_laptop.system import System

AIRFLOW_ENVIRONMENT_PATH = REPOSITORY_PATH / ".venv" / "airflow"
LOCALCLOUD_PYTHON = REPOSITORY_PATH / ".venv" / "localcloud" / "bin" / "python"
DATA_DAYS = ",".join(f"{model}=2013-01-01/2013-12-31" for model in ("flight_delays", "departures", "digits"))
"""Of the models that are here: a run that the clock starts today would find no row. One's own models have their own."""


@dataclass(kw_only=True)
class LaptopSystem(System):
    """A local cloud with flights and digits, and an Airflow that has the models of this checkout."""

    dags_path: Path = REPOSITORY_PATH / "dags"
    plugins_path: Path | None = REPOSITORY_PATH / "plugins"
    environment_path: Path = AIRFLOW_ENVIRONMENT_PATH
    cloud_python: Path = LOCALCLOUD_PYTHON
    cloud_config_path: Path = CLOUD_CONFIG_PATH
    import_path: str = PACKAGES_PATH
    seed: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=lambda: {"RETRAINING_DATA_DAYS": DATA_DAYS})

    def __post_init__(self) -> None:
        """Load the demonstration's data where nothing else is named."""
        self.seed = self.seed or ("-m", "demo.seed", "--state", str(self.state_path))
