"""The Models page as HTML: everything escaped, no script, one style that its own policy allows by digest.

The templates lie beside this file, not in `include`: Composer's web server gets `plugins` alone.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import logging
from pathlib import Path

from retraining.core.report.models_page.all_models import AllModels, BrokenRow, ModelRow
from retraining.core.report.models_page.folder import FolderPage
from retraining.core.report.models_page.one_model import OneModel
from retraining.core.report.rendering import SHARED_PATH, environment

LOGGER = logging.getLogger(__name__)
TEMPLATES_PATH = Path(__file__).with_name("templates")


def render_all(page: AllModels) -> str:
    """Return the page of all models; one whose row cannot be drawn is *unknown* in it."""
    return _render("all_models.html.j2", page=page, draw_row=_draw_row)


def render_one(page: OneModel) -> str:
    """Return a model's page; a part that cannot be drawn is *unknown* in it."""

    def draw(name: str, title: str) -> str:
        try:
            return _part(f"model_{name}.html.j2", page=page)
        except Exception as error:  # whatever a document holds, the other parts are shown
            LOGGER.exception("a part of the page of %s cannot be drawn: %s", page.summary.model, name)
            problem = f"{type(error).__name__}, the log of the API server has the rest"
            return _part("unknown_section.html.j2", page=page, title=title, problem=problem)

    return _render("one_model.html.j2", page=page, draw_section=draw)


def _draw_row(row: ModelRow | BrokenRow) -> str:
    if isinstance(row, BrokenRow):
        return _part("unknown_row.html.j2", model=row.model, address=row.address, problem=row.problem)
    try:
        return _part("model_row.html.j2", row=row)
    except Exception as error:  # whatever a row holds, the others are shown
        model = row.summary.model
        LOGGER.exception("the row of %s cannot be drawn", model)
        problem = f"{type(error).__name__}: what is stored of it cannot be drawn"
        return _part("unknown_row.html.j2", model=model, address=row.address, problem=problem)


def _part(template: str, **values: object) -> str:
    """Return a part of a page: its template escapes what it shows."""
    return environment(TEMPLATES_PATH).get_template(template).render(**values)


def render_documents(page: FolderPage) -> str:
    """Return the page with the documents of a folder."""
    return _render("documents.html.j2", page=page)


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
    sheets = (SHARED_PATH / "pages.css", TEMPLATES_PATH / "style.css")
    return "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


@functools.cache
def policy() -> str:
    """Return the content security policy: nothing is loaded, nothing runs, and only this style counts."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def _render(template: str, **values: object) -> str:
    return environment(TEMPLATES_PATH).get_template(template).render(**values, policy=policy(), style=style())
