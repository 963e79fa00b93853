"""Who signed the address of a request to Cloud Storage: signed URLs of version 4 and of version 2, with RSA keys.

In: the head of a request by the XML API. Out: the e-mail address of the service account whose key signed it, or
`SignedUrlError` with the code that the service gives. What is signed:
https://cloud.google.com/storage/docs/authentication/canonical-requests (4) and
https://cloud.google.com/storage/docs/access-control/signed-urls-v2 (2).
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import unquote, unquote_plus, urlsplit

from localcloud.access.credentials import Accounts
from localcloud.http.http1 import Head
from localcloud.state import State

PARAMETERS = frozenset(
    (
        "X-Goog-Algorithm", "X-Goog-Credential", "X-Goog-Date", "X-Goog-Expires", "X-Goog-SignedHeaders",
        "X-Goog-Signature", "GoogleAccessId", "Expires", "Signature",
    )
)  # fmt: skip
"""Of an address, which say who signed it."""
LONGEST_S = 7 * 24 * 3600
"""For which an address of version 4 may hold."""
SKEW_S = 15 * 60
"""How far a signature may lie in the future: clocks differ."""
_ALGORITHM = "GOOG4-RSA-SHA256"
_STAMP = "%Y%m%dT%H%M%SZ"
_EXTENSION = "x-goog-"


class SignedUrlError(Exception):
    """An address is signed, and not so that one could believe it.

    Attributes:
        status: Of HTTP.
        code: Of the XML API.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class SignedUrls:
    """Tells who signed an address.

    Args:
        state: The state directory, with the service accounts' keys.
        now: Seconds since 1970.
    """

    def __init__(self, state: State, now: Callable[[], float] = time.time) -> None:
        self._accounts = Accounts(state)
        self._now = now

    def signer(self, head: Head) -> str | None:
        """Return the e-mail address of who signed a request's address; None: it is not signed.

        Raises:
            SignedUrlError: It is, and has ended, or is not what was signed.
        """
        query = urlsplit(head.target).query
        parameters: dict[str, str] = {}
        for part in filter(None, query.split("&")):
            name, _, value = part.partition("=")
            if parameters.setdefault(unquote(name), unquote_plus(value)) != unquote_plus(value):
                raise _invalid(f"{unquote(name)[:100]} is given twice, with two values.")
        if "X-Goog-Signature" in parameters:
            return self._signer_of_4(head, query, parameters)
        if "Signature" in parameters:
            return self._signer_of_2(head, parameters)
        return None

    def _signer_of_4(self, head: Head, query: str, parameters: Mapping[str, str]) -> str:
        algorithm = _required(parameters, "X-Goog-Algorithm")
        if algorithm != _ALGORITHM:
            message = f"X-Goog-Algorithm {algorithm[:100]!r} is not offered by the local cloud. Expected {_ALGORITHM}."
            raise SignedUrlError(501, "NotImplemented", message)
        email, _, scope = _required(parameters, "X-Goog-Credential").partition("/")
        stamp = _required(parameters, "X-Goog-Date")
        if not re.fullmatch(rf"{re.escape(stamp[:8])}/[a-z0-9-]+/storage/goog4_request", scope):
            expected = "ACCOUNT/DATE/LOCATION/storage/goog4_request, of the day of X-Goog-Date"
            raise _invalid(f"X-Goog-Credential cannot be read. Expected {expected}.")
        self._check_times(stamp, _required(parameters, "X-Goog-Expires"))
        signed = _required(parameters, "X-Goog-SignedHeaders").split(";")
        fields = _signed_fields(head, signed)
        others = [part.partition("=") for part in query.split("&") if not part.startswith("X-Goog-Signature=")]
        canonical = "\n".join(
            (
                head.method,
                urlsplit(head.target).path,
                "&".join(f"{name}={value}" for name, _, value in sorted(others)),
                *(f"{name}:{fields[name]}" for name in signed),
                "",
                ";".join(signed),
                fields.get("x-goog-content-sha256", "UNSIGNED-PAYLOAD"),
            )
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        self._verify(email, f"{algorithm}\n{stamp}\n{scope}\n{digest}", _hex(parameters["X-Goog-Signature"]))
        return email

    def _check_times(self, stamp: str, expires: str) -> None:
        try:
            begin = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise _invalid("X-Goog-Date cannot be read. Expected YYYYMMDD'T'HHMMSS'Z'.") from None
        if not re.fullmatch("[0-9]{1,6}", expires) or not 1 <= int(expires) <= LONGEST_S:
            raise _invalid(f"X-Goog-Expires is {expires[:20]!r}. Expected 1 to {LONGEST_S} seconds.")
        if begin - SKEW_S > self._now():
            message = "The difference between the request time and the server's time is too large."
            raise SignedUrlError(403, "RequestTimeTooSkewed", message)
        self._check_end(begin + int(expires))

    def _check_end(self, end: float) -> None:
        if end <= self._now():
            when = datetime.fromtimestamp(end, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            message = f"The provided token has expired. Request signature expired at: {when}"
            raise SignedUrlError(400, "ExpiredToken", message)

    def _signer_of_2(self, head: Head, parameters: Mapping[str, str]) -> str:
        email, expires = _required(parameters, "GoogleAccessId"), _required(parameters, "Expires")
        if not re.fullmatch("[0-9]{1,11}", expires):
            raise _invalid(f"Expires is {expires[:20]!r}. Expected seconds since 1970.")
        self._check_end(int(expires))
        fields = _fields(head)
        extensions = sorted(f"{name}:{value}" for name, value in fields.items() if name.startswith(_EXTENSION))
        lines = (
            head.method,
            fields.get("content-md5", ""),
            fields.get("content-type", ""),
            expires,
            *extensions,
            urlsplit(head.target).path,
        )
        try:
            signature = base64.b64decode(parameters["Signature"], validate=True)
        except ValueError:
            raise _mismatch() from None
        self._verify(email, "\n".join(lines), signature)
        return email

    def _verify(self, email: str, signed: str, signature: bytes) -> None:
        """Hold a signature to the account's key.

        Raises:
            SignedUrlError: It is another one's, or of something else.
        """
        from google.auth import crypt  # `localcloud env` runs where there is nothing but the standard library

        account = self._accounts.find_account(email)
        if account is None:
            message = f"The provided security credentials are not valid: {email[:200]} has no key here."
            raise SignedUrlError(403, "InvalidSecurity", message)
        if not crypt.verify_signature(signed.encode(), signature, account.public_key_pem):
            raise _mismatch()


def without_signature(head: Head) -> Head:
    """Return a request's head without what says who signed its address."""
    address, _, query = head.target.partition("?")
    kept = "&".join(part for part in query.split("&") if unquote(part.partition("=")[0]) not in PARAMETERS)
    target = f"{address}?{kept}" if kept else address
    return Head(first_line=head.first_line.replace(head.target, target, 1), fields=head.fields)


def _required(parameters: Mapping[str, str], name: str) -> str:
    if not parameters.get(name):
        raise _invalid(f"A signed URL needs the parameter {name}.")
    return parameters[name]


def _fields(head: Head) -> dict[str, str]:
    """Return the header fields as they are signed: values of one name joined, white space made single."""
    fields: dict[str, str] = {}
    for name, value in head.fields:
        text = " ".join(value.split())
        fields[name.lower()] = f"{fields[name.lower()]},{text}" if name.lower() in fields else text
    return fields


def _signed_fields(head: Head, signed: list[str]) -> dict[str, str]:
    """Return the header fields of a request of which those are signed.

    Raises:
        SignedUrlError: One that is signed is missing, or one of Cloud Storage's own is not signed.
    """
    fields = _fields(head)
    missing = [name for name in signed if name not in fields]
    unsigned = [name for name in fields if name.startswith(_EXTENSION) and name not in signed]
    if signed != sorted(signed) or "host" not in signed or missing or unsigned:
        what = f"{missing[0]!r} is signed and missing" if missing else f"{(unsigned or ['host'])[0]!r} is not signed"
        message = f"Your request has a malformed header: {what}, or X-Goog-SignedHeaders are not in order."
        raise SignedUrlError(400, "MalformedSecurityHeader", message)
    return fields


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise _mismatch() from None


def _invalid(message: str) -> SignedUrlError:
    return SignedUrlError(400, "InvalidArgument", f"Invalid argument. {message}")


def _mismatch() -> SignedUrlError:
    message = "The request signature we calculated does not match the signature you provided. Check your Google secret"
    return SignedUrlError(403, "SignatureDoesNotMatch", f"{message} key and signing method.")
