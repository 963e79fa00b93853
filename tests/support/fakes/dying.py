"""A cloud whose calls end the process: before or after the n-th one, as a SIGKILL would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.fakes.cloud import FakeCloud

SERVICES = ("artifacts", "registry", "endpoints", "serving_metrics", "warehouse", "jobs", "logs")


class Death(BaseException):
    """The process is gone: nothing catches this, nothing is cleaned up."""


class DyingService:
    """One of the fake's services, counted call by call."""

    def __init__(self, service: Any, counter: DyingCloud) -> None:
        self._service = service
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        """The service's own, with a death around it."""
        found = getattr(self._service, name)
        return self._counter.around(found, name) if callable(found) else found


class DyingCloud:
    """A `FakeCloud` in which the process dies at one call, once.

    Args:
        cloud: What lives on.
        at: Number of the call, from 1; 0: it never dies.
        after: Whether the call still does its work.
        instead: What happens there instead of a death, for example another worker's whole wake.
    """

    def __init__(
        self, cloud: FakeCloud, at: int = 0, *, after: bool = False, instead: Callable[[], None] | None = None
    ) -> None:
        self._cloud = cloud
        self._instead = instead
        self._at = at
        self._after = after
        self.calls: list[str] = []
        for service in SERVICES:
            setattr(self, service, DyingService(getattr(cloud, service), self))

    def __getattr__(self, name: str) -> Any:
        """All else is the fake's."""
        return getattr(self._cloud, name)

    def connect(self) -> DyingCloud:
        """Return this very cloud at each poke."""
        return self

    def around(self, method: Any, name: str) -> Any:
        """The method, with the death where it is due."""

        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            due = self.is_due()
            if due and not self._after:
                self._strike(f"before {name}")
            result = method(*args, **kwargs)
            if due and self._after:
                self._strike(f"after {name}")
            return result

        return called

    def is_due(self) -> bool:
        """Whether the call that was just counted is the one."""
        return len(self.calls) == self._at

    def _strike(self, where: str) -> None:
        if self._instead is None:
            raise Death(where)
        self._instead()
