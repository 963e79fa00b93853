"""Which machine types Vertex AI takes, so that a wrong one is refused here as it is there.

Comes in: `machines.json` (patterns, from the machine types' documentation). Goes out: findings.
https://cloud.google.com/vertex-ai/docs/training/configure-compute
https://cloud.google.com/vertex-ai/docs/predictions/configure-compute
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from google.cloud.aiplatform_v1.types import AcceleratorType, MachineSpec

from localcloud.vertex.resources.validation import Finding


@functools.cache
def _patterns() -> dict[str, list[str]]:
    table: dict[str, list[str]] = json.loads(Path(__file__).with_name("machines.json").read_text())
    return table


def check_machine(spec: MachineSpec, use: Literal["training", "prediction"], field: str) -> Iterator[Finding]:
    """Check that it is a machine type of the service, with accelerators that fit it."""
    if not spec.machine_type:
        yield f"{field}.machine_type", "Required field is not set."
        return
    if not any(re.fullmatch(pattern, spec.machine_type) for pattern in _patterns()[use]):
        yield (
            f"{field}.machine_type",
            (
                f"Machine type {spec.machine_type!r} is not supported for {use}. Expected one such as"
                f" n1-standard-4 or e2-standard-8."
            ),
        )
    typed = spec.accelerator_type != AcceleratorType.ACCELERATOR_TYPE_UNSPECIFIED
    if typed != (spec.accelerator_count > 0):
        yield (
            f"{field}.accelerator_count",
            (
                f"accelerator_type {AcceleratorType(spec.accelerator_type).name} goes with a positive"
                f" accelerator_count, found {spec.accelerator_count}. Set both or none."
            ),
        )
    if typed and spec.machine_type.startswith(("e2-", "n2", "c2", "c3", "c4", "n4", "m1-")):
        yield (
            f"{field}.accelerator_type",
            (
                f"Machine type {spec.machine_type!r} takes no accelerators, found"
                f" {AcceleratorType(spec.accelerator_type).name}. Use n1-standard-*, a2-* or g2-*."
            ),
        )
