"""Geometry of the Models page's drawings: values and times in, coordinates in SVG units out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from retraining.core.report.charts import Scale, Tick, axis, padded, points

SPARK_WIDTH, SPARK_HEIGHT = 120.0, 28.0
SMALL_WIDTH, SMALL_HEIGHT = 220.0, 64.0
WIDE_WIDTH, WIDE_HEIGHT = 760.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 12.0, 26.0
MARGIN = 4.0
A_DAY = timedelta(days=1)
MANY = 40


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A point with its words, its end of an interval below and above (None: it has none), and how it looks."""

    x: float
    y: float
    message: str
    tone: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Spark:
    """A line without axes, and its last point."""

    points: str
    x: float
    y: float


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a chart: its name, which is its colour, too, and its dots; `band` is the outline of its intervals."""

    name: str
    message: str
    points: str
    band: str
    dots: tuple[Dot, ...]

    @property
    def radius(self) -> float:
        """Of a dot: many are small."""
        return 3.2 if len(self.dots) <= MANY else 1.4


@dataclass(frozen=True, kw_only=True)
class TimeChart:
    """Several series over time; `marks` are moments at which something was done."""

    series: tuple[Series, ...]
    marks: tuple[Dot, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True, kw_only=True)
class SmallChart:
    """Values of one thing over time, with the limit that they may not be over, and the last value."""

    points: str
    dots: tuple[Dot, ...]
    limit: float | None

    @property
    def marked(self) -> tuple[Dot, ...]:
        """Those that are drawn by themselves: what was over the limit, and the last."""
        return tuple(dot for dot in self.dots if dot.tone or dot is self.dots[-1])


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A value at a time, as it is drawn."""

    at: datetime
    value: float
    message: str
    tone: str = ""
    low: float | None = None
    high: float | None = None


def spark(values: Sequence[float]) -> Spark | None:
    """Return the line of some values, oldest first; None of fewer than two."""
    if len(values) < 2:
        return None
    low, high = padded(values)
    x = Scale(low=0, high=len(values) - 1, start=MARGIN, end=SPARK_WIDTH - MARGIN)
    y = Scale(low=low, high=high, start=SPARK_HEIGHT - MARGIN, end=MARGIN)
    places = [(x(place), y(value)) for place, value in enumerate(values)]
    return Spark(points=points(places), x=places[-1][0], y=places[-1][1])


def small_chart(values: Sequence[Measured], limit: float | None) -> SmallChart | None:
    """Return the drawing of one thing that is watched; the axis begins at 0. None: it has no value."""
    if not values:
        return None
    highest = max([*(each.value for each in values), limit or 0.0, 1e-9])
    lowest = min([*(each.value for each in values), 0.0])
    x = _time_scale([each.at for each in values], MARGIN, SMALL_WIDTH - MARGIN)
    y = Scale(low=lowest, high=highest * 1.12, start=SMALL_HEIGHT - MARGIN, end=MARGIN)
    dots = tuple(Dot(x=x(_seconds(each.at)), y=y(each.value), message=each.message, tone=each.tone) for each in values)
    return SmallChart(
        points=points([(dot.x, dot.y) for dot in dots]),
        dots=dots,
        limit=y(limit) if limit is not None else None,
    )


def time_chart(series: Sequence[tuple[str, str, Sequence[Measured]]], marks: Sequence[Measured]) -> TimeChart | None:
    """Lay out several series over one time axis; None where none has a value.

    Args:
        series: Name, words and values of each; of each the values oldest first.
        marks: Moments to be marked; their values are not drawn.
    """
    shown = [(name, message, values) for name, message, values in series if values]
    everything = [each for _, _, values in shown for each in values]
    if not everything:
        return None
    ends = [end for each in everything for end in (each.value, each.low, each.high) if end is not None]
    y, y_ticks = axis(*padded(ends), WIDE_HEIGHT - BOTTOM, TOP)
    times = [each.at for each in (*everything, *marks)]
    x = _time_scale(times, LEFT, WIDE_WIDTH - RIGHT)
    return TimeChart(
        series=tuple(_series(name, message, [_dot(each, x, y) for each in values]) for name, message, values in shown),
        marks=tuple(
            Dot(x=x(_seconds(each.at)), y=WIDE_HEIGHT - BOTTOM, message=each.message, tone=each.tone) for each in marks
        ),
        x_ticks=_time_ticks(times, x),
        y_ticks=y_ticks,
    )


def _series(name: str, message: str, dots: Sequence[Dot]) -> Series:
    highs = [(dot.x, dot.high) for dot in dots if dot.high is not None]
    lows = [(dot.x, dot.low) for dot in dots if dot.low is not None]
    return Series(
        name=name,
        message=message,
        points=points([(dot.x, dot.y) for dot in dots]),
        band=points([*highs, *lows[::-1]]) if len(highs) > 1 else "",
        dots=tuple(dots),
    )


def _dot(each: Measured, x: Scale, y: Scale) -> Dot:
    return Dot(
        x=x(_seconds(each.at)),
        y=y(each.value),
        message=each.message,
        tone=each.tone,
        low=y(each.low) if each.low is not None else None,
        high=y(each.high) if each.high is not None else None,
    )


def strip(times: Sequence[tuple[datetime, str, str]], width: float = WIDE_WIDTH) -> tuple[Dot, ...]:
    """Return moments on a line: each with its tone and words."""
    if not times:
        return ()
    x = _time_scale([at for at, _, _ in times], MARGIN, width - MARGIN)
    return tuple(Dot(x=x(_seconds(at)), y=0.0, message=message, tone=tone) for at, tone, message in times)


def _time_ticks(times: Sequence[datetime], x: Scale) -> tuple[Tick, ...]:
    """Return at most six days, at equal distances; of less than two days hours."""
    first, last = min(times), max(times)
    if first == last:
        return (Tick(at=x(_seconds(first)), text=f"{first:%Y-%m-%d}"),)
    form = "%d %b %H:%M" if last - first < 2 * A_DAY else "%Y-%m-%d"
    moments = [first + (last - first) * part / 4 for part in range(5)]
    return tuple(Tick(at=x(_seconds(moment)), text=f"{moment:{form}}") for moment in moments)


def _time_scale(times: Sequence[datetime], start: float, end: float) -> Scale:
    first, last = _seconds(min(times)), _seconds(max(times))
    if first == last:
        first, last = first - 1, last + 1
    return Scale(low=first, high=last, start=start, end=end)


def _seconds(moment: datetime) -> float:
    return moment.timestamp()
