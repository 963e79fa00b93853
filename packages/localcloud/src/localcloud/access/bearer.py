"""Who calls: access tokens that `identity` gave out, and tokens that a service account signed for itself.

In: the `Authorization` field of a request. Out: the caller's e-mail address, or `BearerError`. Access tokens carry
their holder and end, signed with a key of the state directory, so that they hold over a restart and every server can
check them alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable

from localcloud.access.credentials import Accounts
from localcloud.state import State

ACCESS_LIFETIME_S = 3600
# https://cloud.google.com/docs/authentication/rest: the messages of the services' own refusals, and the way out here.
WAY_OUT = 'Set the variables of `localcloud env`; for curl: -H "Authorization: Bearer $(localcloud token)".'
MISSING = (
    "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid"
    f" authentication credential. {WAY_OUT}"
)
INVALID = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid"
    f" authentication credential. {WAY_OUT}"
)
_AUDIENCE = re.compile(r"https://[a-z0-9.-]+\.googleapis\.com(/.*)?")
_PREFIX = "local"
_REMEMBERED = 1024


class BearerError(Exception):
    """The request does not say who calls, or not so that one could believe it (UNAUTHENTICATED)."""


class Bearers:
    """Gives out access tokens and tells whose they are.

    Args:
        state: The state directory; its key is made when missing.
        now: Seconds since 1970.
    """

    def __init__(self, state: State, now: Callable[[], float] = time.time) -> None:
        self._key = state.token_key()
        self._accounts = Accounts(state)
        self._now = now
        self._seen: dict[str, tuple[str, float]] = {}  # verifying a signature takes 0.1 ms, and a token comes often

    def issue(self, principal: str, lifetime_s: float = ACCESS_LIFETIME_S) -> str:
        """Return an access token."""
        claims = json.dumps({"email": principal, "exp": int(self._now() + lifetime_s)}).encode()
        return f"{_PREFIX}.{_encode(claims)}.{_encode(self._sign(claims))}"

    def principal(self, authorization: str) -> str:
        """Return the e-mail address of who sent this `Authorization` field.

        Raises:
            BearerError: Nobody we know.
        """
        scheme, _, token = authorization.strip().partition(" ")
        if not scheme:
            raise BearerError(MISSING)
        if scheme.lower() != "bearer" or not token:
            raise BearerError(INVALID)
        return self.holder(token.strip())[0]

    def holder(self, token: str) -> tuple[str, float]:
        """Return a token's holder and when it ends, in seconds since 1970.

        Raises:
            BearerError: It was not made here, or has ended.
        """
        known = self._seen.get(token)
        if known is None:
            known = self._read_own(token) if token.startswith(f"{_PREFIX}.") else self._read_signed(token)
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[token] = known
        if known[1] <= self._now():
            raise BearerError(INVALID)
        return known

    def _sign(self, claims: bytes) -> bytes:
        return hmac.digest(self._key, claims, hashlib.sha256)

    def _read_own(self, token: str) -> tuple[str, float]:
        try:
            _, claims_text, signature = token.split(".")
            claims = _decode(claims_text)
            if not hmac.compare_digest(_decode(signature), self._sign(claims)):
                raise BearerError(INVALID)
        except ValueError:
            raise BearerError(INVALID) from None
        document = json.loads(claims)
        return str(document["email"]), float(document["exp"])

    def _read_signed(self, token: str) -> tuple[str, float]:
        """Read a self-signed JWT (https://google.aip.dev/auth/4111): for a service, or with scopes."""
        from google.auth import jwt  # `localcloud env` runs where there is nothing but the standard library

        try:
            claimed = jwt.decode(token, verify=False)
            account = self._accounts.find_account(str(claimed.get("iss", "")))
            if account is None:
                raise BearerError(INVALID)
            claims = jwt.decode(token, certs=account.public_key_pem)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BearerError(INVALID) from None
        audience = str(claims.get("aud", ""))
        if claims.get("sub", account.email) != account.email:
            raise BearerError(INVALID)
        if not (_AUDIENCE.fullmatch(audience) or (not audience and claims.get("scope"))):
            raise BearerError(INVALID)
        return account.email, float(claims["exp"])


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
