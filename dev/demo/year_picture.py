"""The picture of a replayed year: score, drift, champions and what the monitor did, as one HTML file without scripts.

Comes in: the steps. Goes out: a page that needs nothing else.
"""

from __future__ import annotations

import html
import string
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import datetime, timedelta

from demo.year import Step, Year, year_lines
from demo.year_scenario import FOLDER

WIDTH, LEFT, RIGHT = 960, 150, 20
SCORE, DRIFT, CHAMPIONS, ACTIONS = (50, 190), (235, 335), (365, 390), (430, 445)
HEIGHT = 490
_LOWEST, _HIGHEST = 0.4, 0.8
_HEADS = ("until", "answers", "version", "auc", "skew", "what was wrong", "outcome", "in words")


def render_year(year: Year, title: str) -> str:
    """Return the page."""
    named = (line.split(maxsplit=1) for line in year_lines(year))
    lines = "".join(f"<p><b>{html.escape(name)}</b> {html.escape(words)}</p>" for name, words in named)
    picture = ET.tostring(draw_year(year), encoding="unicode")
    template = string.Template((FOLDER / "page.html").read_text())
    table = ET.tostring(_table(year.steps), encoding="unicode", method="html")
    return template.substitute(title=html.escape(title), lines=lines, picture=picture, table=table)


def draw_year(year: Year) -> ET.Element:
    """Return the drawing: a column per step, from its first day to the moment at which the monitor looked."""
    svg = ET.Element("svg", viewBox=f"0 0 {WIDTH} {HEIGHT}", xmlns="http://www.w3.org/2000/svg")
    place = _Places(year)
    _events(svg, year, place)
    _axis(
        svg, SCORE, "auc of the answers", [(f"{value:.1f}", _high(value, SCORE)) for value in (0.4, 0.5, 0.6, 0.7, 0.8)]
    )
    scored = [(place.middle(step), _high(step.auc, SCORE)) for step in year.steps if step.auc is not None]
    _line(svg, "score", scored)
    for x, y in scored:
        _add(svg, "circle", cx=x, cy=y, r=3.5, **{"class": "dot"})
    _axis(svg, DRIFT, "skew, of its threshold", [(f"{value}", _share(value, DRIFT)) for value in (0, 1, 2, 3)])
    _line(
        svg,
        "drift",
        [(place.middle(step), _share(step.skew[1] / step.skew[2], DRIFT)) for step in year.steps if step.skew],
    )
    _add(svg, "line", x1=LEFT, x2=WIDTH - RIGHT, y1=_share(1, DRIFT), y2=_share(1, DRIFT), **{"class": "limit"})
    _champions(svg, year, place)
    _text(svg, LEFT - 10, ACTIONS[1], "monitor", "soft", "end")
    for step in year.steps:
        mark = _add(svg, "circle", cx=place.end(step), cy=ACTIONS[0] + 10, r=6 if step.retrained else 4)
        mark.set("class", step.outcome)
        ET.SubElement(mark, "title").text = f"{step.as_of:%Y-%m-%d}: {step.outcome} ({step.because}). {step.words}"
        if step.outcome != "none":
            _text(svg, place.end(step), ACTIONS[1] + 25, step.outcome, "soft", "middle")
    for step in year.steps[:: max(1, len(year.steps) // 8)]:
        _text(svg, place.end(step), HEIGHT - 6, f"{step.as_of:%d %b}", "soft", "middle")
    return svg


class _Places:
    """Where a moment stands.

    Args:
        year: Which is drawn.
    """

    def __init__(self, year: Year) -> None:
        self._start = year.scenario.start
        self._step = timedelta(days=year.scenario.step_days)
        end = year.steps[-1].as_of if year.steps else year.scenario.at(1)
        self._scale = (WIDTH - LEFT - RIGHT) / (end - self._start).total_seconds()

    def of(self, moment: datetime) -> float:
        """Return a moment's place."""
        return round(LEFT + max(0.0, (moment - self._start).total_seconds()) * self._scale, 1)

    def end(self, step: Step) -> float:
        """Return where a step ends."""
        return self.of(step.as_of)

    def begin(self, step: Step) -> float:
        """Return where a step begins."""
        return self.of(step.as_of - self._step)

    def middle(self, step: Step) -> float:
        """Return where a step's numbers stand."""
        return (self.begin(step) + self.end(step)) / 2


def _events(svg: ET.Element, year: Year, place: _Places) -> None:
    """Shade what was wrong."""
    last = year.steps[-1].as_of if year.steps else year.scenario.start
    for event in year.scenario.events:
        begin = year.scenario.at(event.day)
        end = min(last, year.scenario.at(event.until)) if event.until is not None else last
        if begin >= last:
            continue
        box = {"x": place.of(begin), "y": SCORE[0] - 20, "width": place.of(end) - place.of(begin)}
        shade = _add(svg, "rect", **box, height=ACTIONS[1] - SCORE[0] + 20, **{"class": "event"})
        ET.SubElement(shade, "title").text = event.words
        _text(svg, place.of(begin) + 4, SCORE[0] - 26, event.kind, "soft")


def _champions(svg: ET.Element, year: Year, place: _Places) -> None:
    """Draw who served when."""
    top, bottom = CHAMPIONS
    _text(svg, LEFT - 10, bottom - 8, "champion", "soft", "end")
    for index, step in enumerate(year.steps):
        if index and year.steps[index - 1].version_id == step.version_id:
            continue
        served = [other for other in year.steps[index:] if other.version_id == step.version_id]
        begin, end = place.begin(step), place.end(served[-1])
        _add(svg, "rect", x=begin + 1, y=top, width=end - begin - 2, height=bottom - top, rx=4, **{"class": "champion"})
        _text(svg, begin + 8, bottom - 8, f"version {step.version_id}")


def _table(steps: Sequence[Step]) -> ET.Element:
    """Return the same as text."""
    table = ET.Element("table")
    head = ET.SubElement(table, "tr")
    for name in _HEADS:
        ET.SubElement(head, "th").text = name
    for step in steps:
        row = ET.SubElement(table, "tr")
        skew = f"{step.skew[0]} {step.skew[1]:.2f} of {step.skew[2]:g}" if step.skew else "-"
        words = f"{step.words} {step.retrained.words}" if step.retrained else step.words
        cells = (
            f"{step.as_of:%Y-%m-%d}",
            f"{step.answers:,}",
            step.version_id,
            "-" if step.auc is None else f"{step.auc:.3f}",
            skew,
            ", ".join([*(event.kind for event in step.events), *step.states]),
            f"{step.outcome} ({step.because})",
            words,
        )
        for cell in cells:
            ET.SubElement(row, "td").text = cell
    return table


def _axis(svg: ET.Element, band: tuple[int, int], title: str, ticks: Sequence[tuple[str, float]]) -> None:
    _text(svg, 10, band[0] - 12, title, "soft")
    for name, y in ticks:
        _add(svg, "line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, **{"class": "axis"})
        _text(svg, LEFT - 10, y + 4, name, "soft", "end")


def _line(svg: ET.Element, name: str, points: Sequence[tuple[float, float]]) -> None:
    if points:
        _add(svg, "polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), **{"class": name})


def _high(value: float, band: tuple[int, int]) -> float:
    share = (min(max(value, _LOWEST), _HIGHEST) - _LOWEST) / (_HIGHEST - _LOWEST)
    return round(band[1] - share * (band[1] - band[0]), 1)


def _share(value: float, band: tuple[int, int]) -> float:
    return round(band[1] - min(value, 3.0) / 3.0 * (band[1] - band[0]), 1)


def _add(parent: ET.Element, name: str, **values: str | float) -> ET.Element:
    return ET.SubElement(parent, name, {key: str(value) for key, value in values.items()})


def _text(svg: ET.Element, x: float, y: float, text: str, name: str = "", anchor: str = "start") -> None:
    values: dict[str, str | float] = {"x": x, "y": y, "text-anchor": anchor}
    if name:
        values["class"] = name
    _add(svg, "text", **values).text = text
