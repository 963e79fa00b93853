"""The Models page as HTML: everything escaped, no script, one style that its own policy allows by digest.

The templates lie beside this file, not in `include`: Composer's web server gets `plugins` alone.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from pathlib import Path

import jinja2

from retraining.core.report.models_page.all_models import AllModels
from retraining.core.report.models_page.one_model import OneModel

TEMPLATES_PATH = Path(__file__).with_name("templates")


def render_all(page: AllModels) -> str:
    """Return the page of all models."""
    return _render("all_models.html.j2", page=page)


def render_one(page: OneModel) -> str:
    """Return a model's page."""
    return _render("one_model.html.j2", page=page)


def render_message(title: str, message: str, way_out: str, models: str | None = None) -> str:
    """Return a page that says why there is nothing to show, and what to do.

    Args:
        title: In a few words.
        message: What was found.
        way_out: What to do.
        models: Address of the page of all models, where this is another one.
    """
    return _render("message.html.j2", title=title, message=message, way_out=way_out, models=models)


@functools.cache
def style() -> str:
    """Return the style sheet of all pages."""
    return (TEMPLATES_PATH / "style.css").read_text(encoding="utf-8")


@functools.cache
def policy() -> str:
    """Return the content security policy: nothing is loaded, nothing runs, and only this style counts."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def _render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values, policy=policy(), style=style())


@functools.cache  # templates are compiled once
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES_PATH),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = lambda value, digits=4: "-" if value is None else f"{value:.{digits}f}"
    environment.filters["value"] = _value
    environment.filters["signed"] = lambda value: f"{value:+.4f}"
    environment.filters["count"] = lambda value: "-" if value is None else f"{value:,}"
    environment.filters["moment"] = lambda value: f"{value:%Y-%m-%d %H:%M}"
    environment.filters["plain"] = lambda value: value.replace("_", " ")
    return environment


def _value(value: float | None) -> str:
    """Return a number with as many digits as tell something: a distance has four decimals, milliseconds have none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4f}"
