"""What there is to tell: made from what a run came to, without a person's name, an example's value or a key.

In: documents and states. Out: a `Notice`, with the cause that it is told once for. Sentences that documents hold are
not taken over where they may name a value of the data or a person; the links lead to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from retraining.core import errors
from retraining.core.documents import Decision, Deployment, Failure, Gate, Ledger, Plan, RampGate, Rollback, Signal
from retraining.core.documents.evaluation import OWN_GATE
from retraining.core.naming import pages, storage
from retraining.core.naming.vertex import ResourceName
from retraining.core.signal_kinds import SIGNAL_KINDS
from retraining.core.spec.notify import Event

ANCHOR = "who-is-told"
"""Heading of the run-book on these messages themselves."""

KINDS = {
    kind.__name__: (kind.__doc__ or "").strip()
    for kind in (*errors.RetrainingError.__subclasses__(), *errors.PlanError.__subclasses__())
}
"""What each class of error means."""


_SIGNALS: Mapping[str, str] = {kind: signal.message for kind, signal in SIGNAL_KINDS.items()}
HELD_BACK = ("hysteresis", "cooldown", "quiet_hours", "paused")
"""Why a signal is not acted on for now; it is told when it is."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """What a reader may open."""

    label: str
    address: str


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something to tell.

    Attributes:
        model: Whose; None: it is of all models.
        event: Its kind.
        slot: What there is one cause of at a time: a run's key, a DAG's id, a rollback's name.
        cause: What it is told once for, within its slot.
        values: What its template shows.
        links: What it leads to.
        runbook: Heading in the run-book, as its anchor.
        template: Stem of its template, where it is not the event's.
    """

    model: str | None
    event: Event
    slot: str
    cause: str
    values: Mapping[str, str | Sequence[str]]
    links: tuple[Link, ...]
    runbook: str
    template: str = ""

    @property
    def text(self) -> str:
        """Stem of its template."""
        return self.template or self.event


@dataclass(frozen=True, kw_only=True)
class DagRun:
    """Where a DAG run is in Airflow's UI.

    Attributes:
        base_url: Of the UI; empty: not configured, and none of its pages is linked.
        dag_id: Its DAG.
        run_id: Its id.
    """

    base_url: str
    dag_id: str
    run_id: str

    @property
    def links(self) -> tuple[Link, ...]:
        """Its page, and the DAG's with the run-book."""
        return (*self._link("DAG run", self._page), *self._link("DAG and its run-book", f"/dags/{self.dag_id}"))

    def answer(self, task_id: str) -> tuple[Link, ...]:
        """Return where a person answers a task that waits."""
        return self._link("Approve or reject", f"{self._page}/tasks/{quote(task_id, safe='')}/required_actions")

    def object(self, label: str, uri: str) -> tuple[Link, ...]:
        """Return where an object of the bucket is shown: by Airflow, where its address is known."""
        return (Link(label=label, address=pages.page_address(uri, self.base_url)),)

    @property
    def _page(self) -> str:
        return f"/dags/{self.dag_id}/runs/{quote(self.run_id, safe='')}"

    def _link(self, label: str, path: str) -> tuple[Link, ...]:
        return (Link(label=label, address=self.base_url.rstrip("/") + path),) if self.base_url else ()


def of_failure(
    model: str | None,
    run: DagRun,
    failed: Sequence[str],
    left: Sequence[str],
    kind: str | None,
    run_uri: str,
    message: Failure | None = None,
) -> Notice:
    """Return the notice of a failed run.

    Args:
        model: Whose; None: the DAG is of all models.
        run: The DAG run.
        failed: Its failed tasks, in its order.
        left: Tasks that did not run.
        kind: Class of the first failed task's error; None: it left none, as when its worker died.
        run_uri: Folder of the run's documents; empty: it came to none.
        message: What the first failed task left of its newest try.
    """
    first = failed[0] if failed else ""
    event: Event = "budget" if kind == errors.BudgetError.__name__ else "failure"
    return Notice(
        model=model,
        event=event,
        slot=run.dag_id,
        cause=f"run:{first}:{kind or 'no error left'}" if failed else f"ended by hand:{left[0] if left else ''}",
        values={
            "what": "run",
            "dag_id": run.dag_id,
            "failed": list(failed),
            "left": list(left),
            "reason": KINDS.get(kind or "", ""),
            "parts": _shown_parts(message) if message else [],
            "quoted": "yes" if message and message.quotes else "",
        },
        links=(
            *_log(message),
            *(_page(run, run_uri) if run_uri and run.dag_id == f"retrain__{model}" else ()),
            *run.links,
        ),
        runbook="costs" if event == "budget" else "what-a-red-run-means",
    )


def _shown_parts(message: Failure) -> list[str]:
    """Return the parts of a message; what may quote the data stays on the run's page."""
    parts = {"Where": message.where, "Found": message.found, "Expected": message.expected, "Way out": message.way_out}
    return [f"{name}: {text}" for name, text in parts.items() if text and not (name == "Found" and message.quotes)]


def _log(message: Failure | None) -> tuple[Link, ...]:
    return (Link(label=f"Log of {message.task}", address=message.log),) if message and message.log else ()


def of_decision(plan: Plan, decision: Decision, run: DagRun, *, asks: bool = False) -> Notice | None:
    """Return the notice of a verdict; None of a backfill's, which changes nothing.

    Args:
        plan: The run.
        decision: The verdict.
        run: The DAG run.
        asks: Whether a person is asked before the version is deployed.
    """
    if decision.verdict == "record":
        return None
    failed = [gate for gate in decision.gates if not gate.passed and gate.gate != "mode"]
    shown = failed or [gate for gate in decision.gates if gate.gate in ("floor", "gain")]
    return Notice(
        model=plan.model,
        event="decision",
        slot=plan.run_key,
        cause=decision.verdict,
        values={
            "verdict": decision.verdict,
            "as_of": f"{plan.as_of:%Y-%m-%d}",
            "gates": [_message_of(gate) for gate in shown],
            "champion": decision.champion.version_id if decision.champion else "",
            "next": "asks" if asks else "deploys" if plan.deploy else "registers",
        },
        links=(*_page(run, plan.run_uri, later=True), *run.links),
        runbook="why-did-it-not-deploy",
    )


def _message_of(gate: Gate) -> str:
    """Return what is told of a gate: nothing that may name a value of the data."""
    if gate.gate == "slices":
        return "a slice of the examples is surely worse than it may be: the run page says which"
    if gate.gate.startswith(OWN_GATE):
        return f"{gate.gate} does not pass: the run page says why"
    return gate.message


def of_approval(plan: Plan, warned: Sequence[str], run: DagRun, task_id: str, answer_within: timedelta) -> Notice:
    """Return the notice that a person is wanted.

    Args:
        plan: The run.
        warned: What the run went on with.
        run: The DAG run.
        task_id: The task that waits.
        answer_within: How long.
    """
    return Notice(
        model=plan.model,
        event="approval",
        slot=plan.run_key,
        cause="asked",
        values={"as_of": f"{plan.as_of:%Y-%m-%d}", "warnings": str(len(warned)), "within": _span(answer_within)},
        links=(*run.answer(task_id), *_page(run, plan.run_uri), *run.links),
        runbook="why-did-it-not-deploy",
    )


def of_deployment(plan: Plan, deployment: Deployment, run: DagRun) -> Notice | None:
    """Return the notice of a deployment that was turned back; None of any other."""
    tried = deployment.staging is not None and deployment.staging.passed is False
    if deployment.deployed or not (deployment.steps or tried):
        return None
    failed = [gate for step in deployment.steps for gate in step.gates if gate.passed is False]
    return Notice(
        model=plan.model,
        event="rollback",
        slot=plan.run_key,
        cause="deployment",
        values={"what": "deployment", "version": "", "gates": _words(failed, tried=tried), "before": ""},
        links=(*_page(run, plan.run_uri, later=True), *run.links),
        runbook="why-did-it-not-deploy",
    )


def of_ledger(row: Ledger, run: DagRun, ledger_uri: str, signals: Sequence[Signal] = ()) -> Notice | None:
    """Return the notice of what a monitor run came to; None: there is nothing new to say.

    A signal that is over its threshold and held back (by hysteresis, a cool-down, quiet hours, a pause) is not told: it
    is when it is acted on. `is_over` says when one that was told is over.

    Args:
        row: Of the ledger.
        run: The DAG run.
        ledger_uri: Where the row stands.
        signals: That it was decided by: the number of the one that it is about is told.
    """
    held = row.reason in ("budget", "loop_guard", "new_days", "no_previous")
    if row.reason in HELD_BACK or (row.outcome == "none" and not held):
        return None
    cause = row.cause or (row.causes[0] if row.causes else row.reason)
    event: Event = "budget" if row.reason == "budget" else "drift"
    return Notice(
        model=row.model,
        event=event,
        slot=run.dag_id,
        cause=f"{row.reason if held else row.outcome}:{cause}",
        values={
            "what": "policy",
            "signal": signal_of(cause),
            "number": next((_number(each) for each in signals if f"{each.kind}:{each.subject}" == cause), ""),
            "outcome": row.reason if held else row.outcome,
            "others": [signal_of(each) for each in row.causes if each != cause],
        },
        links=(*run.object("Ledger row", ledger_uri), *run.links),
        runbook="why-did-it-not-retrain",
    )


def _number(signal: Signal) -> str:
    """Return what was measured, with its limit: `0.41 (l infinity, limit 0.3)`; empty where it has no value."""
    if signal.value is None:
        return ""
    limit = f", limit {signal.threshold:.4g}" if signal.threshold is not None else ""
    return f"{signal.value:.4g} ({signal.measure.replace('_', ' ')}{limit})"


def is_over(row: Ledger) -> bool:
    """Say whether nothing is over its threshold any more, as far as there were requests to judge."""
    return row.outcome == "none" and not row.causes and row.reason in ("no_signal", "no_drift")


def signal_of(cause: str) -> str:
    """Return a cause, `kind:subject`, in words; of a part of the examples (`carrier=UA`) the column alone."""
    kind, _, subject = cause.partition(":")
    what = _SIGNALS.get(kind, kind.replace("_", " "))
    column, value, _ = subject.partition("=")
    return f"{what} ({column}{', for some of its values' if value else ''})" if subject else what


def of_rollback(rollback: Rollback, run: DagRun) -> Notice:
    """Return the notice that an earlier version has the traffic; who asked and why stays in Airflow."""
    return Notice(
        model=rollback.model,
        event="rollback",
        slot=rollback.name,
        cause="stopped" if rollback.stopped else "done",
        values={
            "what": "stopped" if rollback.stopped else "done",
            "version": _version(rollback.version_name),
            "before": _version(rollback.from_version_name),
            "gates": [],
        },
        links=run.links,
        runbook="go-back-to-the-previous-version",
    )


def of_trial(model: str) -> Notice:
    """Return a trial message."""
    return Notice(
        model=model, event="failure", slot="trial", cause="trial", values={}, links=(), runbook=ANCHOR, template="trial"
    )


def _page(run: DagRun, run_uri: str, *, later: bool = False) -> tuple[Link, ...]:
    """Link the run's page, which is made before a person is asked and when the run ends."""
    label = "Run page, once the run has ended" if later else "Run page"
    return run.object(label, storage.report_page_uri(run_uri))


def _span(time: timedelta) -> str:
    hours = time / timedelta(hours=1)
    return f"{hours:g} hours" if hours >= 1 else f"{time / timedelta(minutes=1):g} minutes"


def _version(name: str | None) -> str:
    return (ResourceName.parse(name).version or "") if name else ""


def _words(failed: Sequence[RampGate], *, tried: bool) -> list[str]:
    if failed:
        return [f"{gate.name}: {gate.message}" for gate in failed]
    return ["its answers were wrong where it was tried"] if tried else ["it was stopped before it had all traffic"]
