"""Tokens and the calls that credentials make on the side, through google-auth and requests."""

from __future__ import annotations

import json
import time

import google.auth
import google.auth.transport.requests
import pytest
import requests
from google.auth import crypt, exceptions, impersonated_credentials, jwt
from google.oauth2 import service_account

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


@pytest.fixture(scope="module")
def key(local_cloud) -> dict[str, str]:
    """The made-up service account's key file."""
    with open(local_cloud.env["GOOGLE_APPLICATION_CREDENTIALS"]) as file:  # noqa: PTH123 - a path from the environment
        content: dict[str, str] = json.load(file)
    return content


def test_default_credentials_get_a_token(local_cloud):
    """By the environment alone."""
    credentials, project = google.auth.default(scopes=SCOPES)
    credentials.refresh(google.auth.transport.requests.Request())
    assert (bool(credentials.token), credentials.valid, project) == (True, True, local_cloud.project)


def test_key_file_is_private(local_cloud):
    """Only its owner may read it."""
    from pathlib import Path

    assert Path(local_cloud.env["GOOGLE_APPLICATION_CREDENTIALS"]).stat().st_mode & 0o077 == 0


def test_foreign_key_gets_no_token(key):
    """An assertion signed by another key is refused."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = other.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    credentials = service_account.Credentials.from_service_account_info({**key, "private_key": pem}, scopes=SCOPES)
    with pytest.raises(exceptions.RefreshError, match="Invalid JWT"):
        credentials.refresh(google.auth.transport.requests.Request())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"aud": "https://example.com/token"}, "audience"),
        ({"iss": "somebody@else.iam.gserviceaccount.com"}, "does not exist"),
        ({"iat": 1, "exp": 2}, "expired"),
    ],
)
def test_wrong_claims_get_no_token(key, changes, words):
    """Audience, issuer and time are checked."""
    now = int(time.time())
    claims = {"iss": key["client_email"], "aud": key["token_uri"], "iat": now, "exp": now + 600, **changes}
    assertion = jwt.encode(crypt.RSASigner.from_service_account_info(key), claims).decode()
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
    answer = requests.post(key["token_uri"], data=form, timeout=10)
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_grant"
    assert words in answer.json()["error_description"]


def test_other_grants_are_refused(key):
    """There is no user to ask and no refresh token."""
    answer = requests.post(key["token_uri"], data={"grant_type": "refresh_token", "refresh_token": "x"}, timeout=10)
    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")


def test_id_tokens(key):
    """For an audience, signed by the same key."""
    credentials = service_account.IDTokenCredentials.from_service_account_info(key, target_audience="https://me")
    credentials.refresh(google.auth.transport.requests.Request())
    assert jwt.decode(credentials.token, verify=False)["aud"] == "https://me"


def test_impersonation(local_cloud):
    """generateAccessToken, as the Google provider's impersonation chain asks for it."""
    source, _ = google.auth.default(scopes=SCOPES)
    target = f"trainer@{local_cloud.project}.iam.gserviceaccount.com"
    credentials = impersonated_credentials.Credentials(source, target_principal=target, target_scopes=SCOPES)
    credentials.refresh(google.auth.transport.requests.Request())
    assert credentials.token


def test_trust_boundary_is_answered_at_once(key, local_cloud):
    """google-auth asks for it once per credential; without an answer every new client waits."""
    url = f"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{key['client_email']}/allowedLocations"
    assert local_cloud.http.get(url, timeout=5).json() == {"locations": [], "encodedLocations": "0x0"}


@pytest.mark.parametrize("version", ["v1", "v3"])
def test_projects(local_cloud, version):
    """The one project is there; another is refused as one that does not exist."""
    base = f"https://cloudresourcemanager.googleapis.com/{version}/projects"
    assert local_cloud.http.get(f"{base}/{local_cloud.project}", timeout=5).json()["projectId"] == local_cloud.project
    assert local_cloud.http.get(f"{base}/other", timeout=5).status_code == 403
