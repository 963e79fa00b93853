"""Geometry of the page's charts: numbers in, coordinates in SVG user units out. Drawing is the template's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 360.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 10.0, 12.0, 26.0


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A mark on an axis: where it is, and what is written beside it."""

    at: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Line:
    """One curve: its name, its points as an SVG `points` attribute and one by one, its last value."""

    name: str
    points: str
    dots: tuple[tuple[float, float], ...]
    last: float


@dataclass(frozen=True, kw_only=True)
class LineChart:
    """Curves over epochs 1, 2, …; `best` is the x of the epoch whose weights were kept."""

    name: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    best: float | None


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A linear map from values `[low, high]` to coordinates `[start, end]`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value, to a tenth of a unit."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def padded(values: Iterable[float], margin: float = 0.08) -> tuple[float, float]:
    """Return the range of the values with some room on both sides; never empty."""
    known = list(values)
    low, high = min(known), max(known)
    room = (high - low) * margin or max(abs(high) * 0.05, 0.01)
    return low - room, high + room


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers inside a range: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [round(index * step, decimals) + 0.0 for index in range(first, last + 1)]


def number_text(value: float, values: Sequence[float]) -> str:
    """Return a tick's number with as many decimals as its neighbours need."""
    step = min((b - a for a, b in itertools.pairwise(values)), default=abs(value) or 1.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step < 1 else 0
    return f"{value:,.{min(decimals, 6)}f}"


def axis(low: float, high: float, start: float, end: float, about: int = 4) -> tuple[Scale, tuple[Tick, ...]]:
    """Return the map of a range to coordinates, and about as many ticks."""
    scale, values = Scale(low=low, high=high, start=start, end=end), ticks(low, high, about)
    return scale, tuple(Tick(at=scale(value), text=number_text(value, values)) for value in values)


def line_chart(name: str, series: Mapping[str, Sequence[float]], best_epoch: int | None) -> LineChart:
    """Lay out curves over epochs.

    Args:
        name: Title.
        series: Values per epoch by curve name; at least one curve has a value.
        best_epoch: Counted from 1.
    """
    epochs = max(len(values) for values in series.values())
    low, high = padded(value for values in series.values() for value in values)
    x = Scale(low=1, high=max(epochs, 2), start=LEFT, end=WIDTH - RIGHT)
    y, y_ticks = axis(low, high, HEIGHT - BOTTOM, TOP)
    step = max(1, math.ceil(epochs / 8))
    return LineChart(
        name=name,
        lines=tuple(_line(label, values, x, y) for label, values in series.items() if values),
        x_ticks=tuple(Tick(at=x(epoch), text=str(epoch)) for epoch in range(1, epochs + 1, step)),
        y_ticks=y_ticks,
        best=x(best_epoch) if best_epoch is not None and best_epoch <= epochs else None,
    )


def points(places: Iterable[tuple[float, float]]) -> str:
    """Return coordinates as an SVG `points` attribute."""
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def _line(name: str, values: Sequence[float], x: Scale, y: Scale) -> Line:
    dots = tuple((x(epoch), y(value)) for epoch, value in enumerate(values, start=1))
    return Line(name=name, points=points(dots), dots=dots, last=values[-1])
