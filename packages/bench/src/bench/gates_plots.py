"""The pictures of `docs/evaluation.md`, from what `bench.gates` measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from retraining.core.report.charts import Scale, Tick, number_text, ticks

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 240, 56, 16, 26, 40


@dataclass(frozen=True, kw_only=True)
class Plot:
    """One curve; `dots` are the points that are marked."""

    title: str
    x_name: str
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    points: str
    dots: Sequence[tuple[float, float]]


def write_plots(known: Mapping[str, Any], folder: Path) -> None:
    """Write the power curve and a year of slow decay as SVG."""
    power = {0.0: known["equal"]["promoted"], **{float(gain): at["promoted"] for gain, at in known["gains"].items()}}
    write_plot(
        folder / "power.svg", make_plot("Share of comparisons that promote", "true gain in AUC", power, dots=True)
    )
    ages = known["slow_decay"]["first_year"]["ages"]
    regret = {float(night): known["decay"] * age for night, age in enumerate(ages)}
    write_plot(folder / "slow-decay.svg", make_plot("AUC that the champion has lost", "night", regret, dots=False))


def make_plot(title: str, x_name: str, values: Mapping[float, float], *, dots: bool) -> Plot:
    """Return a curve through some points."""
    x = Scale(low=min(values), high=max(values), start=LEFT, end=WIDTH - RIGHT)
    y = Scale(low=0, high=max(values.values()) or 1, start=HEIGHT - BOTTOM, end=TOP)
    places = [(x(at), y(value)) for at, value in sorted(values.items())]
    return Plot(
        title=title,
        x_name=x_name,
        x_ticks=_ticks(x),
        y_ticks=_ticks(y),
        points=" ".join(f"{a:g},{b:g}" for a, b in places),
        dots=places if dots else (),
    )


def _ticks(scale: Scale) -> list[Tick]:
    values = ticks(scale.low, scale.high)
    return [Tick(at=scale(value), text=number_text(value, values)) for value in values]


def write_plot(path: Path, plot: Plot) -> None:
    """Write a plot as SVG."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
    )
    sides = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "bottom": BOTTOM}
    path.write_text(environment.get_template("plot.svg.j2").render(plot=plot, **sides), encoding="utf-8")
