"""Patches projects: any that is asked for is made up."""

from __future__ import annotations

import re

from localcloud.bigquery.types.results import PROJECT
from localcloud.projects import Projects
from localcloud.untyped import Untyped


class KnownProjects:
    """Answers 403 for a project that is not there (ASGI); a project's number is taken for its id."""

    def __init__(self, app: Untyped, projects: Projects) -> None:
        self._app = app
        self._projects = projects

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request (ASGI)."""
        asked = re.match(r"((?:/resumable)?(?:/upload)?/bigquery/v2/projects/)([^/]+)(.*)", scope.get("path", ""))
        if asked is None:
            await self._app(scope, receive, send)
            return
        project = self._projects.find_id(asked.group(2))
        if project is not None:
            path = f"{asked.group(1)}{project}{asked.group(3)}"
            PROJECT.set(project)
            await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)
            return
        from starlette.responses import JSONResponse

        message = f"Access Denied: Project {asked.group(2)}: it does not exist, or you may not use it."
        detail = {"reason": "accessDenied", "message": message, "domain": "global"}
        body = {"error": {"code": 403, "message": message, "errors": [detail], "status": "PERMISSION_DENIED"}}
        await JSONResponse(body, status_code=403)(scope, receive, send)
