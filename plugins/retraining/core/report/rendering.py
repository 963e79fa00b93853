"""What the pages of runs and of models are made with: their templates' environment, the forms of numbers in them.

What both draw and look like alike lies in `templates` beside this file.
"""

from __future__ import annotations

import functools
from datetime import datetime
from pathlib import Path

import jinja2

from retraining.core.settings import data_path

SHARED_PATH = Path(__file__).with_name("templates")


def render_template(template: str, **values: object) -> str:
    """Render a page of runs: everything is escaped, and an undefined value is an error."""
    return environment(data_path("templates")).get_template(template).render(**values)


@functools.cache  # templates are compiled once
def environment(templates: Path) -> jinja2.Environment:
    """Return what renders the templates of a folder, and those that all pages share."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([templates, SHARED_PATH]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for form in (amount, count, duration, moment, number, plain, signed, size, value):
        made.filters[form.__name__] = form
    return made


def number(known: float | None, digits: int = 4) -> str:
    """Return a number with so many decimals."""
    return "-" if known is None else f"{known:.{digits}f}"


def value(known: float | None) -> str:
    """Return a number with as many digits as tell something: a distance has four decimals, milliseconds have none."""
    if known is None:
        return "-"
    return f"{known:,.0f}" if abs(known) >= 100 else f"{known:.4f}"


def signed(known: float | None) -> str:
    """Return a difference, with its sign; what rounds to nothing has `+`."""
    return "-" if known is None else f"{known:+z.4f}"


def count(known: int | None) -> str:
    """Return how many."""
    return "-" if known is None else f"{known:,}"


def amount(known: float) -> str:
    """Return a sum, which may be a whole number."""
    return f"{known:,.0f}" if known == round(known) else f"{known:,.2f}"


def moment(known: datetime) -> str:
    """Return a time to the minute."""
    return f"{known:%Y-%m-%d %H:%M}"


def plain(name: str) -> str:
    """Return a name of ours as words."""
    return name.replace("_", " ")


def duration(seconds: float | None) -> str:
    """Return seconds as people read them: `41.5 s`, `1 min 58 s`, `2 h 05 min`."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size(count: int) -> str:
    """Return bytes as people read them, in powers of 1000: `97.1 kB`."""
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"
