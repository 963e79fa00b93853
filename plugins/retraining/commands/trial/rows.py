"""Which rows of docs/assumptions.md one trial asks: sets of them, each for less than a dollar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from retraining.commands.trial import batch, cluster, deployments, endpoints, jobs, signals, tuning
from retraining.commands.trial.batch import BatchProbes
from retraining.commands.trial.cleaning import GONE_WITHIN
from retraining.commands.trial.cluster import ClusterProbes
from retraining.commands.trial.endpoints import EndpointProbes
from retraining.commands.trial.experiments import ExperimentProbes
from retraining.commands.trial.jobs import JobProbes
from retraining.commands.trial.pools import PoolProbes
from retraining.commands.trial.probes import Part, Trial
from retraining.commands.trial.registry import RegistryProbes
from retraining.commands.trial.serving import ServingProbes
from retraining.commands.trial.shared import SharedProbes
from retraining.commands.trial.signals import SignalProbes
from retraining.commands.trial.statements import StatementProbes
from retraining.commands.trial.storage import StorageProbes
from retraining.commands.trial.tuning import TuningProbes
from retraining.core.catalog.cost import Prices, machine_hourly, pool_hourly
from retraining.core.documents.plan import Pool

LONGEST = timedelta(minutes=90)
"""Of a trial: what is not answered by then is unknown, and everything is taken away."""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Machines that a trial may have.

    Attributes:
        count: Of them.
        longest: That each is paid for.
        serving: Kind of those of endpoints and batch predictions; "": they are of jobs.
    """

    count: int
    longest: timedelta
    serving: str = ""

    def usd(self, prices: Prices, region: str) -> float | None:
        """Return what they cost at most; None: it is not known."""
        hourly = (
            machine_hourly(prices, self.serving, region)
            if self.serving
            else pool_hourly(prices, Pool(machine=jobs.MACHINE, count=1, disk_gb=jobs.DISK_GB), region)
        )
        return None if hourly is None else self.count * hourly * self.longest.total_seconds() / 3600


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows that are asked together.

    Attributes:
        parts: Make the probes of a trial: what is free first, what stays paid until it is taken away last.
        paid: The most that is paid for.
    """

    parts: Callable[[Trial], Sequence[Part]]
    paid: Sequence[Machines]

    def price_at_most(self, prices: Prices | None, region: str) -> float | None:
        """Return what they cost in US dollars where everything takes as long as it may; None: it is not known."""
        if prices is None:
            return None
        amounts = [each.usd(prices, region) for each in self.paid]
        return None if None in amounts else round(sum(amount for amount in amounts if amount is not None), 2)


def _basic(trial: Trial) -> Sequence[Part]:
    return (
        StorageProbes(trial=trial),
        StatementProbes(trial=trial),
        ExperimentProbes(trial=trial),
        JobProbes(trial=trial),
        ClusterProbes(trial=trial),
        RegistryProbes(trial=trial),
        ServingProbes(trial=trial),
    )


BASIC = "basic"
ROWS = {
    BASIC: Rows(
        parts=_basic,
        paid=(
            Machines(count=2, longest=jobs.TIMEOUT),
            Machines(count=1, longest=jobs.SHORT + jobs.ENDED_WITHIN),
            Machines(count=2, longest=cluster.TIMEOUT),
            Machines(count=2, longest=LONGEST + GONE_WITHIN, serving=deployments.MACHINE),
        ),
    ),
    "machines": Rows(
        parts=lambda trial: (SignalProbes(trial=trial), PoolProbes(trial=trial)),
        paid=(
            Machines(count=signals.MACHINES, longest=signals.TIMEOUT),
            Machines(count=1, longest=LONGEST + GONE_WITHIN),
        ),
    ),
    "tuning": Rows(
        parts=lambda trial: (TuningProbes(trial=trial),),
        paid=(Machines(count=2 * tuning.TRIALS, longest=tuning.TRIAL_TIMEOUT),),
    ),
    "batch": Rows(
        parts=lambda trial: (BatchProbes(trial=trial),),
        paid=(
            Machines(count=1, longest=jobs.TIMEOUT),
            Machines(count=2, longest=batch.ANSWERED_WITHIN + GONE_WITHIN, serving=deployments.MACHINE),
            Machines(count=1, longest=deployments.DEPLOYED_WITHIN + GONE_WITHIN, serving=deployments.MACHINE),
        ),
    ),
    "endpoints": Rows(
        parts=lambda trial: (EndpointProbes(trial=trial), SharedProbes(trial=trial)),
        paid=(
            Machines(count=1, longest=jobs.TIMEOUT),
            Machines(count=endpoints.MOST, longest=LONGEST + GONE_WITHIN, serving=endpoints.MACHINE),
            Machines(count=1, longest=LONGEST + GONE_WITHIN, serving=deployments.MACHINE),
        ),
    ),
}
"""By name."""
