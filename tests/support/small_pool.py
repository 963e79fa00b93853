"""A pool of two small machines, as a file and as a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from retraining.core.spec.machine_pool import MachinePool

POOL_YAML = """\
name: nightly
description: The night's machines
opens: "0 1 * * *"
hours: 3
machines:
  - {machine: n1-standard-4, min: 1, max: 2}
"""


def pool_values(**changes: Any) -> dict[str, Any]:
    """The pool as plain values."""
    return {**yaml.safe_load(POOL_YAML), **changes}


def make_pool(**changes: Any) -> MachinePool:
    """The pool."""
    return MachinePool.model_validate(pool_values(**changes))


def write_pool(include: Path, **changes: Any) -> Path:
    """Write the pool's file into a folder `include`."""
    values = pool_values(**changes)
    path = include / "pools" / f"{values['name']}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(values, sort_keys=False))
    return path
