"""What the application answers with: pages of its own, and stored objects, each with headers that keep it harmless."""

from __future__ import annotations

from fastapi.responses import HTMLResponse, Response

from retraining.core.report.models_page.rendering import policy, render_message

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SANDBOX = "sandbox allow-popups allow-popups-to-escape-sandbox"
"""Of what a job can have written: an origin of its own, no script, no form; a link leads on, also into a new tab."""
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
STORED_PAGE_POLICY = f"{NOTHING}; style-src 'unsafe-inline'; img-src data:; {SANDBOX}"
"""A run's page is one file: its styles and pictures are in it, and it has no script."""
DOCUMENT_POLICY = f"{NOTHING}; {SANDBOX}"


def page(html: str, status: int = 200) -> HTMLResponse:
    """Return a page of this application."""
    headers = {**HEADERS, "Content-Security-Policy": f"{policy()}; frame-ancestors 'self'"}
    return HTMLResponse(html, status, headers)


def message(title: str, text: str, way_out: str, status: int = 200, models: str | None = None) -> HTMLResponse:
    """Return a page that says why there is nothing to show, and what to do."""
    return page(render_message(title, text, way_out, models), status)


def stored_page(html: bytes) -> Response:
    """Return a page as it is stored, where nothing in it can act for its reader."""
    headers = {**HEADERS, "Content-Security-Policy": STORED_PAGE_POLICY}
    return Response(html, headers=headers, media_type="text/html; charset=utf-8")


def stored_document(json_text: bytes) -> Response:
    """Return a document as it is stored."""
    headers = {**HEADERS, "Content-Security-Policy": DOCUMENT_POLICY}
    return Response(json_text, headers=headers, media_type="application/json; charset=utf-8")
