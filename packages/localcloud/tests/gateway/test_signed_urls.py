"""Addresses that Google's own client signs, of both versions: who signed them, and what is refused."""

from __future__ import annotations

import datetime
import itertools
import time
from typing import Any

import pytest
from google.cloud import storage
from google.oauth2 import service_account

from localcloud.access.credentials import ACCOUNT_EMAIL, Accounts
from localcloud.gateway.signed_urls import LONGEST_S, SKEW_S, SignedUrlError, SignedUrls, without_signature
from localcloud.http.http1 import Head
from localcloud.state import State

EMAIL = "trainer@local-project.iam.gserviceaccount.com"
HOST = "storage.googleapis.com"
NAMES = ("plain.txt", "a folder/ü+~%25.txt", "q?x=1&y#z", "spaced  twice")
VERSIONS = ("v2", "v4")


class Signer:
    """A client that signs with a key of the state directory, and what reads it."""

    def __init__(self, state: State, email: str = EMAIL, now: Any = time.time) -> None:
        accounts = Accounts(state)
        path = accounts.key_path(email)
        credentials = service_account.Credentials.from_service_account_file(str(path))
        self.bucket = storage.Client(project="local-project", credentials=credentials).bucket("bucket")
        self.urls = SignedUrls(state, now)

    def sign(self, name: str = "x", **options: Any) -> str:
        """The path and query of an address of an object."""
        given = {"version": "v4", "expiration": datetime.timedelta(minutes=5), **options}
        url: str = self.bucket.blob(name).generate_signed_url(**given)
        return url.removeprefix(f"https://{HOST}")

    def read(self, target: str, method: str = "GET", **fields: str) -> str | None:
        """Who signed it."""
        named = [("Host", HOST), *((name.replace("_", "-"), value) for name, value in fields.items())]
        return self.urls.signer(Head(first_line=f"{method} {target} HTTP/1.1", fields=named))


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    return State(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def signer(state: State) -> Signer:
    return Signer(state)


@pytest.mark.parametrize(("version", "name"), [*itertools.product(VERSIONS, NAMES)])
def test_it_is_read_as_whose_it_is(signer: Signer, version: str, name: str) -> None:
    """With what the answer is to say, a generation, and each method."""
    answer = {"response_type": "text/plain; charset=utf-8", "response_disposition": 'attachment; filename="a b.txt"'}
    assert signer.read(signer.sign(name, version=version, generation=7, **answer)) == EMAIL
    for method in ("PUT", "DELETE", "HEAD"):
        assert signer.read(signer.sign(name, version=version, method=method), method) == EMAIL


def test_the_header_fields_that_are_signed_are_held(signer: Signer) -> None:
    headers = {"x-goog-meta-Day": "  2014   01 ", "Content-Type": "text/csv"}
    target = signer.sign(method="PUT", headers=headers, content_type="text/csv")
    assert signer.read(target, "PUT", X_Goog_Meta_Day="2014 01", content_type="text/csv") == EMAIL
    with pytest.raises(SignedUrlError, match="does not match"):
        signer.read(target, "PUT", X_Goog_Meta_Day="2015 01", content_type="text/csv")
    with pytest.raises(SignedUrlError, match="'x-goog-meta-day' is signed and missing"):
        signer.read(target, "PUT", content_type="text/csv")
    with pytest.raises(SignedUrlError, match="'x-goog-meta-other' is not signed"):
        signer.read(target, "PUT", X_Goog_Meta_Day="2014 01", content_type="text/csv", x_goog_meta_other="1")


def test_version_2_holds_type_digest_and_fields_too(signer: Signer) -> None:
    signed = {"content_type": "text/csv", "content_md5": "1B2M2Y8AsgTpgAmY7PhCfg==", "headers": {"x-goog-meta-a": "1"}}
    target = signer.sign(version="v2", method="PUT", **signed)
    fields = {"content_type": "text/csv", "content_md5": "1B2M2Y8AsgTpgAmY7PhCfg==", "x_goog_meta_a": "1"}
    assert signer.read(target, "PUT", **fields) == EMAIL
    for name in fields:
        with pytest.raises(SignedUrlError, match="does not match"):
            signer.read(target, "PUT", **(fields | {name: "other"}))


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_changed_is_another_ones(signer: Signer, version: str) -> None:
    """Each letter of the signature, the object, the method, the account."""
    target = signer.sign(version=version)
    place = target.index("Signature=") + len("Signature=") + 10
    letter = "0" if target[place] != "0" else "1"
    changed = {
        "signature": (target[:place] + letter + target[place + 1 :], "GET"),
        "object": (target.replace("/bucket/x", "/bucket/y"), "GET"),
        "method": (target, "DELETE"),
        "account": (target.replace("trainer%40", "local-cloud%40"), "GET"),
    }
    Accounts(signer.urls._accounts._state).key_path(ACCOUNT_EMAIL)
    for what, (address, method) in changed.items():
        with pytest.raises(SignedUrlError) as refused:
            signer.read(address, method)
        assert (refused.value.status, refused.value.code) == (403, "SignatureDoesNotMatch"), what


@pytest.mark.parametrize("version", VERSIONS)
def test_it_ends(state: State, version: str) -> None:
    now = time.time()
    signer = Signer(state, now=lambda: now)
    target = signer.sign(version=version, expiration=datetime.timedelta(seconds=60))
    assert signer.read(target) == EMAIL
    now += 62
    with pytest.raises(SignedUrlError, match="has expired") as refused:
        signer.read(target)
    assert (refused.value.status, refused.value.code) == (400, "ExpiredToken")
    now -= 62 + SKEW_S + 5
    if version == "v4":
        with pytest.raises(SignedUrlError, match="too large"):
            signer.read(target)


@pytest.mark.parametrize(
    ("found", "given", "code"),
    [
        ("X-Goog-Expires=300", f"X-Goog-Expires={LONGEST_S + 1}", "InvalidArgument"),
        ("X-Goog-Expires=300", "X-Goog-Expires=0", "InvalidArgument"),
        ("X-Goog-Expires=300", "X-Goog-Expires=%D9%A3", "InvalidArgument"),
        ("X-Goog-Expires=300&", "", "InvalidArgument"),
        ("X-Goog-Expires=300", "X-Goog-Expires=300&X-Goog-Expires=900", "InvalidArgument"),
        ("GOOG4-RSA-SHA256", "GOOG4-HMAC-SHA256", "NotImplemented"),
        ("storage%2Fgoog4", "compute%2Fgoog4", "InvalidArgument"),
        ("trainer%40", "nobody%40", "InvalidSecurity"),
        ("trainer%40", "..%2F..%2Ftrainer%40", "InvalidArgument"),
        ("SignedHeaders=host", "SignedHeaders=", "InvalidArgument"),
        ("SignedHeaders=host", "SignedHeaders=date", "MalformedSecurityHeader"),
        ("Signature=", "Signature=zz", "SignatureDoesNotMatch"),
    ],
)
def test_what_is_malformed_is_named(signer: Signer, found: str, given: str, code: str) -> None:
    target = signer.sign()
    assert found in target
    with pytest.raises(SignedUrlError) as refused:
        signer.read(target.replace(found, given))
    assert refused.value.code == code


@pytest.mark.parametrize("target", ["/bucket/x", "/bucket/x?generation=1", "/bucket/x?signature=1"])
def test_others_are_not_signed(signer: Signer, target: str) -> None:
    assert signer.read(target) is None


def test_what_says_who_signed_it_is_for_the_gateway_alone(signer: Signer) -> None:
    for version in VERSIONS:
        target = signer.sign(version=version, generation=7, response_type="text/plain")
        kept = without_signature(Head(first_line=f"GET {target} HTTP/1.1", fields=[])).target
        assert sorted(kept.removeprefix("/bucket/x?").split("&")) == [
            "generation=7",
            "response-content-type=text%2Fplain",
        ]
    assert without_signature(Head(first_line=f"GET {signer.sign()} HTTP/1.1", fields=[])).target == "/bucket/x"
