"""Gates of a team's own: what they are given, and what their answers mean.

In: plan and evaluation, and the functions that the model's file names. Out: gates of the decision. A function is asked
twice: one that answers otherwise the second time has not judged. What is not judged does not pass, and where the gate
only warns it is a warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from retraining.core.documents.evaluation import OWN_GATE, Difference, Evaluation, Gate, Slice
from retraining.core.documents.plan import Plan
from retraining.core.errors import SpecError, plain_text
from retraining.core.metrics import HIGHER_IS_BETTER, Quality
from retraining.core.spec.evaluation import OwnGate
from retraining.core.team_code import TeamFunction, attempt, explain

NOT_JUDGED = "not judged"
ANSWER_S = 30.0
"""In which a gate answers."""
MOST_CHARACTERS = 500
"""Of a reason; what is longer is cut."""
ANSWER = "passes and a reason, (True, 'why')"

Metrics = Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Challenger minus champion in the metric that decides, with the interval of its confidence."""

    mean: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, kw_only=True)
class SliceOfRun:
    """Quality over the test rows with one value in one column, or in two (` & ` between them).

    Attributes:
        column: Which.
        value: As text; empty: missing.
        rows: How many of them.
        challenger: Its metrics.
        champion: Its metrics; None: no champion was scored.
        difference: None: there is no champion, or the rows say too little.
    """

    column: str
    value: str
    rows: int
    challenger: Metrics
    champion: Metrics | None
    difference: Interval | None


@dataclass(frozen=True, kw_only=True)
class RunToJudge:
    """What a gate of a team's own is given: numbers of the evaluation, read only, and no row of the data.

    Attributes:
        model: Its name.
        as_of: The run's time, UTC.
        is_backfill: Whether the run only records a version.
        metric: That decides.
        higher_is_better: Whether more of it is better.
        rows: Test rows.
        label_rate: Share of positive labels; None: the label is not binary.
        label_counts: Rows of each class; empty: the label has not several.
        challenger: Metrics by name; None where one is not defined.
        champion: Those of the champion on the same rows; None: there is none, or it was not scored.
        difference: In the metric that decides; None: no champion, or too little evidence.
        slices: As the model's file names them.
    """

    model: str
    as_of: datetime
    is_backfill: bool
    metric: str
    higher_is_better: bool
    rows: int
    label_rate: float | None
    label_counts: tuple[int, ...]
    challenger: Metrics
    champion: Metrics | None
    difference: Interval | None
    slices: tuple[SliceOfRun, ...]

    def slice(self, column: str, value: str) -> SliceOfRun | None:
        """Return the slice of a value of a column; None: there is none in the test rows."""
        return next((each for each in self.slices if (each.column, each.value) == (column, value)), None)


def run_to_judge(plan: Plan, evaluation: Evaluation) -> RunToJudge:
    """Return what the gates are given of a run."""
    metric, champion = plan.spec.evaluation.metric, evaluation.champion
    theirs = {(each.column, each.value): each for each in champion.slices} if champion else {}
    differences = {(each.column, each.value): each.difference for each in evaluation.slice_differences}
    return RunToJudge(
        model=plan.model,
        as_of=plan.as_of,
        is_backfill=plan.mode == "backfill",
        metric=metric,
        higher_is_better=metric in HIGHER_IS_BETTER,
        rows=evaluation.rows,
        label_rate=evaluation.label_rate,
        label_counts=evaluation.label_counts or (),
        challenger=_metrics(evaluation.challenger.metrics),
        champion=_metrics(champion.metrics) if champion else None,
        difference=_interval(evaluation.difference),
        slices=tuple(
            SliceOfRun(
                column=each.column,
                value=str(each.value),
                rows=each.rows,
                challenger=_metrics(each.metrics),
                champion=_slice_metrics(theirs.get((each.column, each.value))),
                difference=_interval(differences.get((each.column, each.value))),
            )
            for each in evaluation.challenger.slices
        ),
    )


def judge_own_gates(
    plan: Plan, evaluation: Evaluation, functions: Mapping[str, TeamFunction | SpecError]
) -> tuple[Gate, ...]:
    """Return the verdicts of the gates that the model's file names, in its order.

    Args:
        plan: The run, with the digest of each gate's code.
        evaluation: What the judge found.
        functions: By the gate's name; an error: why it cannot be loaded.
    """
    given = run_to_judge(plan, evaluation)
    return tuple(_judge(plan, gate, functions.get(gate.name), given) for gate in plan.spec.evaluation.gates)


def ask(function: TeamFunction, given: RunToJudge) -> tuple[bool, str] | Exception:
    """Ask a gate twice; return whether it passes, and why.

    Returns:
        An error where it has not judged: what it raised, that it took too long (`OutOfTimeError`), that its answer is
        none, or that its answers are not the same (`ValueError`).
    """

    def twice() -> tuple[bool, str]:
        first, second = (_checked(function.call(given)) for _ in range(2))
        if first != second:
            raise ValueError(f"it answered {first!r} and then {second!r} to the same question")
        return first

    return attempt(ANSWER_S, twice)


def _judge(plan: Plan, gate: OwnGate, found: TeamFunction | SpecError | None, given: RunToJudge) -> Gate:
    code = plan.gates.get(gate.name)
    if code is None:
        return _unjudged(gate, None, "the plan has no code of it: clear plan and what follows it")
    if found is None or isinstance(found, SpecError):
        reason = "its code is not here" if found is None else f"{found.found}. {found.way_out}"
        return _unjudged(gate, code.sha256, reason)
    if found.sha256 != code.sha256:
        changed = f"its file is not the one of the plan (SHA-256 {found.sha256[:16]}, planned {code.sha256[:16]})"
        return _unjudged(gate, code.sha256, f"{changed}; trigger again with Force")
    answer = ask(found, given)
    if isinstance(answer, Exception):
        return _unjudged(gate, code.sha256, explain(answer))
    passes, reason = answer
    return _gate(gate, code.sha256, "passes" if passes else "does not pass", reason, passes=passes)


def _unjudged(gate: OwnGate, sha256: str | None, reason: str) -> Gate:
    return _gate(gate, sha256, NOT_JUDGED, f"{NOT_JUDGED}, {reason}", passes=False)


def _gate(gate: OwnGate, sha256: str | None, found: str, reason: str, *, passes: bool) -> Gate:
    return Gate(
        gate=f"{OWN_GATE}{gate.name}",
        passed=passes or gate.severity == "warn",
        found=found,
        expected=f"{gate.function} passes",
        message=f"{gate.name}: {plain_text(reason)}",
        code=sha256,
        warns=not passes and gate.severity == "warn",
    )


def _checked(answer: object) -> tuple[bool, str]:
    if isinstance(answer, tuple) and len(answer) == 2:
        passes, reason = answer
        if isinstance(passes, bool) and isinstance(reason, str) and reason.strip():
            return passes, " ".join(reason.split())[:MOST_CHARACTERS]
    raise ValueError(f"it answered {answer!r:.100}; expected {ANSWER}")


def _metrics(quality: Quality) -> Metrics:
    return MappingProxyType(quality.model_dump())


def _slice_metrics(found: Slice | None) -> Metrics | None:
    return _metrics(found.metrics) if found else None


def _interval(difference: Difference | None) -> Interval | None:
    if difference is None:
        return None
    return Interval(mean=difference.mean, low=difference.low, high=difference.high, confidence=difference.confidence)


def warnings_of(gates: Sequence[Gate]) -> list[str]:
    """Return what gates that only warn have found."""
    return [gate.message for gate in gates if gate.warns]
