"""Which features the models rely on: one line per feature, the challenger's most important one first."""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.documents.evaluation import Evaluation, Importance, Rise
from retraining.core.promotion.evidence import describe_shortage, is_short

FEATURES_SHOWN = 15
_LOSSES = {"log_loss": "log loss", "mae": "absolute error"}
_TOGETHER = {"rows": "rows", "groups": "groups", "days": "test days"}


@dataclass(frozen=True, kw_only=True)
class ImportanceRow:
    """One feature. `width`: of its bar, in percent of the largest. `not_judged`: why not, else empty."""

    feature: str
    challenger: Rise | None
    champion: Rise | None
    change: Rise | None
    width: float
    not_judged: str


@dataclass(frozen=True, kw_only=True)
class ImportanceTable:
    """The section of the page. `not_judged`: what is not, and why; else empty. `together`: what is independent."""

    loss: str
    rows: int
    repeats: int
    percent: float
    together: str
    features: tuple[ImportanceRow, ...]
    more: tuple[ImportanceRow, ...]
    not_judged: str


def importance_table(evaluation: Evaluation) -> ImportanceTable | None:
    """Return the section; None where it was not asked for, or the evaluation is of an earlier release."""
    found = evaluation.importance
    if found is None:
        return None
    largest = max((item.challenger.mean for item in found.features if item.challenger), default=0.0)
    rows = tuple(
        ImportanceRow(
            feature=item.feature,
            challenger=item.challenger,
            champion=item.champion,
            change=item.change,
            width=_width(item.challenger, largest),
            not_judged=item.not_judged or "",
        )
        for item in found.features
    )
    return ImportanceTable(
        loss=_LOSSES[found.loss],
        rows=found.rows,
        repeats=found.repeats,
        percent=100 * found.confidence,
        together=_TOGETHER[found.drawn_by],
        features=rows[:FEATURES_SHOWN],
        more=rows[FEATURES_SHOWN:],
        not_judged=_not_judged(found),
    )


def most_important(importance: Importance | None, most: int = 5) -> tuple[str, ...]:
    """Return the features that the challenger surely relies on, the most important one first."""
    features = importance.features if importance else ()
    return tuple(item.feature for item in features if item.challenger and item.challenger.low > 0)[:most]


def _width(rise: Rise | None, largest: float) -> float:
    return 100 * max(rise.mean, 0.0) / largest if rise and largest > 0 else 0.0


def _not_judged(found: Importance) -> str:
    if is_short(found.evidence):
        return f"among the rows drawn there are {describe_shortage(found.evidence)}"
    return found.not_judged or ""
