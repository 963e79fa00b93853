"""The page's application, made with its first request.

Every process of Airflow imports plugins, also those of tasks: they pay for nothing but this file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class LazyApplication:
    """An ASGI application that another one answers for.

    Args:
        make: Makes that one.
    """

    def __init__(self, make: Callable[[], Application]) -> None:
        self._make = make
        self._application: Application | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._application is None:
            self._application = await asyncio.to_thread(self._make)
        await self._application(scope, receive, send)


def make_models_page() -> Application:
    """Return the Models page."""
    from retraining.web.application import make_application

    return make_application()


models_page = LazyApplication(make_models_page)
