"""Faults of a running local cloud, from outside: what `localcloud faults` does.

In: a state directory. Out: requests to `/faults` (`localcloud.faults` says what a fault is), with the standard library.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from localcloud.access.bearer import Bearers
from localcloud.access.credentials import ACCOUNT_EMAIL
from localcloud.environment.variables import google_environment
from localcloud.faults import Fault, FaultError
from localcloud.state import State

_TIMEOUT_S = 60


class FaultClient:
    """The faults in force, behind the gateway.

    Args:
        state: State directory of a running local cloud.
    """

    def __init__(self, state: State) -> None:
        environment = google_environment(state)
        context = ssl.create_default_context(cafile=environment["SSL_CERT_FILE"])
        proxy = urllib.request.ProxyHandler({"https": environment["https_proxy"]})
        self._opener = urllib.request.build_opener(proxy, urllib.request.HTTPSHandler(context=context))
        self._url = f"https://{state.read_settings().region}-aiplatform.googleapis.com/faults"
        self._headers = {"Authorization": f"Bearer {Bearers(state).issue(ACCOUNT_EMAIL)}"}

    def list_all(self) -> list[Fault]:
        """Return the faults in force, oldest first."""
        faults: list[Fault] = self._ask("GET")["faults"]
        return faults

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force; return it with its `id` and its defaults.

        Raises:
            FaultError: It is none.
        """
        return self._ask("POST", body=fault)

    def remove(self, number: int | None = None) -> None:
        """Take a fault back, or all of them.

        Raises:
            FaultError: There is none of that number.
        """
        self._ask("DELETE", "" if number is None else f"/{number}")

    def _ask(self, verb: str, path: str = "", body: Fault | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        url = self._url + path
        request = urllib.request.Request(url, data=data, headers=self._headers, method=verb)  # noqa: S310 - https, above
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as response:
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            raise FaultError(json.load(error)["error"]["message"]) from error
        return answer
