"""The forest plot: the gain of every slice with its interval, one below the other, under that of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retraining.core.report import charts
from retraining.core.report.quality import Interval, SliceRow, in_sight

ROWS_SHOWN = 60
NAMES, ROW, TOP, BOTTOM = 156.0, 15.0, 6.0, 24.0
NAME_LENGTH = 22  # characters that the names' column has room for
ALL = "all rows"


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One interval, in SVG units. `tone`: `good` or `bad` where all of it lies on one side of 0, else empty."""

    name: str
    message: str
    tone: str
    y: float
    x: float
    x_low: float
    x_high: float


@dataclass(frozen=True, kw_only=True)
class Forest:
    """The plot, worst slice first.

    Attributes:
        slices: All that have an interval; of them `better` and `worse` lie wholly on one side of 0.
        names: Width of the names' column.
        bound: x of the loss that a slice may have; None where it is out of sight.
    """

    rows: tuple[ForestRow, ...]
    slices: int
    better: int
    worse: int
    names: float
    height: float
    zero: float
    bound: float | None
    x_ticks: tuple[charts.Tick, ...]

    @property
    def left_out(self) -> int:
        """Slices that there is no room for."""
        return self.slices - min(self.slices, ROWS_SHOWN)


def forest(slices: Sequence[SliceRow], whole: Interval | None, max_slice_loss: float) -> Forest | None:
    """Lay out the slices' intervals; None where no slice has one.

    Args:
        slices: Worst first.
        whole: The gain over all rows.
        max_slice_loss: What a slice may lose.
    """
    known = [(row, row.gain, row.gains) for row in slices if row.gain is not None and row.gains]
    if not known or whole is None:
        return None
    lines = [(None, whole.mean, (whole.low, whole.high)), *known[:ROWS_SHOWN]]
    near = [0.0, *(end for _, _, ends in lines for end in ends)]
    bound = -max_slice_loss if in_sight(max_slice_loss, near) else None
    low, high = charts.padded([*near, *([] if bound is None else [bound])])
    x, x_ticks = charts.axis(low, high, NAMES, charts.WIDTH - charts.RIGHT)
    return Forest(
        rows=tuple(
            ForestRow(
                name=_short_name(row) if row else ALL,
                message=f"{f'{row.column} = {row.value}, {row.rows:,} rows' if row else ALL}: {gain:+z.4f}, from "
                f"{ends[0]:+z.4f} to {ends[1]:+z.4f}",
                tone=_tone(ends),
                y=TOP + ROW * (place + 0.5),
                x=x(gain),
                x_low=x(ends[0]),
                x_high=x(ends[1]),
            )
            for place, (row, gain, ends) in enumerate(lines)
        ),
        slices=len(known),
        better=sum(_tone(ends) == "good" for _, _, ends in known),
        worse=sum(_tone(ends) == "bad" for _, _, ends in known),
        names=NAMES,
        height=TOP + ROW * len(lines) + BOTTOM,
        zero=x(0),
        bound=None if bound is None else x(bound),
        x_ticks=x_ticks,
    )


def _short_name(row: SliceRow) -> str:
    """Cut the column before the value, which tells a slice from its neighbours."""
    room = NAME_LENGTH - len(f" = {row.value}")
    return _cut(f"{_cut(row.column, max(room, 4))} = {row.value}", NAME_LENGTH)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _tone(ends: tuple[float, float]) -> str:
    return "good" if ends[0] > 0 else "bad" if ends[1] < 0 else ""
