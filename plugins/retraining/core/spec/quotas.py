"""The file `include/quotas.yaml`: how much of a region retraining may use at once.

In: the file that whoever looks after the project writes, beside the models' files. Out: the limits of a region.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from retraining.core.errors import SpecError, suggest
from retraining.core.spec.section import Section
from retraining.core.spec.section_file import find_section

FILE = "quotas.yaml"
JOBS, MACHINES, CPUS = "jobs", "machines", "cpus"
LONGEST_HEAD_START_HOURS = 10.5
"""Of one job before another: see `core.jobs.places`. Whoever waits for longer is overtaken by nobody who comes."""

Limit = Annotated[int, Field(ge=0, le=10**6)]


class Quota(Section):
    """What may be used at once in a region. What is not named is not limited; 0 allows none."""

    jobs: Limit | None = None
    """Jobs of Vertex AI; a search for hyperparameters is one, whatever its trials."""
    machines: Limit | None = None
    """Machines of all jobs together."""
    cpus: Limit | None = None
    """Their vCPUs; a host of `cloud-tpu` counts none, Google counts it with its TPU."""
    accelerators: dict[str, Limit] = Field(default_factory=dict)
    """By Vertex AI's name; of TPU_V2 and TPU_V3 cores, of newer ones chips."""

    @property
    def limits(self) -> dict[str, int]:
        """Each limit by what it is of."""
        named = {JOBS: self.jobs, MACHINES: self.machines, CPUS: self.cpus}
        return {name: limit for name, limit in named.items() if limit is not None} | self.accelerators


class Quotas(Section):
    """Limits by region. A region that is not named has none."""

    regions: dict[str, Quota]
    """By Google's name of the region."""
    wait_hours: Annotated[float, Field(ge=12, le=144)] = 24
    """How long a job waits for room before its task fails: longer than any head start, and shorter than the seven days
    for which a run's lease keeps its spans."""

    def limits(self, region: str) -> Mapping[str, int]:
        """Return the limits of a region; of one that is not named there are none."""
        quota = self.regions.get(region)
        return quota.limits if quota else {}

    def explain(self, region: str | None) -> str:
        """Return a line: what is limited where, of one region or of all that are named."""
        shown = self.regions if region is None else {region: self.regions.get(region, Quota())}
        parts = [
            f"{name} {', '.join(f'{limit} {what}' for what, limit in quota.limits.items()) or 'unlimited'}"
            for name, quota in shown.items()
        ]
        return f"{FILE}: {'; '.join(parts) or 'no region'}; a job waits for at most {self.wait_hours:g} hours"

    def require_known(self, regions: Collection[str], accelerators: Collection[str]) -> None:
        """Refuse names that nothing has.

        Args:
            regions: Those that there are.
            accelerators: Likewise.

        Raises:
            SpecError: A region or an accelerator is named that there is not.
        """
        for region, quota in self.regions.items():
            _require_name(f"{FILE}, regions", region, regions)
            for accelerator in quota.accelerators:
                _require_name(f"{FILE}, regions.{region}.accelerators", accelerator, accelerators)


def _require_name(where: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        way_out = suggest(name, sorted(known)) or "Where the table is behind, add it to include/regions/hardware.json"
        raise SpecError(where, repr(name), f"one of: {', '.join(sorted(known))}", way_out)


def load_quotas(include: Path) -> Quotas | None:
    """Return what the file says; None: there is none, and nothing is limited.

    Raises:
        SpecError: Anything is wrong with it; the message has all findings, with lines.
    """
    return find_section(include / FILE, Quotas)
