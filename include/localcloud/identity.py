"""Who you are, in a cloud with one made-up account: tokens, impersonation, and the project's own record.

In: requests to oauth2, iamcredentials and cloudresourcemanager. Out: what google-auth, gcloud and the SDK expect.
Tokens are given only for assertions that the made-up key signed; the services behind the gateway do not ask for them
(they listen on loopback and hold nothing that is secret).
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import secrets
from urllib.parse import parse_qs

from google.auth import crypt, jwt

from localcloud.credentials import TOKEN_URI, ServiceAccount
from localcloud.http1 import Request, Response
from localcloud.projects import Projects

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIFETIME_S = 3600


class Identity:
    """Answers for the identity hosts."""

    def __init__(self, account: ServiceAccount, *, projects: Projects) -> None:
        self._account = account
        self._public_key = account.public_key_pem
        self._signer = crypt.RSASigner.from_string(account.private_key_pem, account.key_id)
        self._projects = projects

    async def answer(self, request: Request) -> Response:
        """Answer one request to an identity host."""
        service = request.host.split(".")[0]
        if service == "oauth2":
            return self._oauth2(request.path, await request.read())
        if service == "iamcredentials":
            return self._iam_credentials(request.path, await request.read())
        return self._resource_manager(request.path)

    def _oauth2(self, path: str, body: bytes) -> Response:
        if path == "/tokeninfo":
            return Response.of_json({"email": self._account.email, "expires_in": str(LIFETIME_S), "scope": ""})
        if path != "/token":
            return _not_found(path)
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if form.get("grant_type") != JWT_BEARER:
            return _token_error("unsupported_grant_type", f"Expected grant_type {JWT_BEARER}.")
        try:
            claims = jwt.decode(form.get("assertion", ""), certs=self._public_key, audience=TOKEN_URI)
        except ValueError as error:
            return _token_error("invalid_grant", f"Invalid JWT: {error}")
        if claims.get("iss") != self._account.email:
            return _token_error("invalid_grant", f"Invalid JWT: account {claims.get('iss')} does not exist here.")
        if "target_audience" in claims:
            return Response.of_json({"id_token": self._id_token(claims["target_audience"])})
        return Response.of_json({"access_token": _token(), "expires_in": LIFETIME_S, "token_type": "Bearer"})

    def _iam_credentials(self, path: str, body: bytes) -> Response:
        if path.endswith("/allowedLocations"):
            # google-auth asks for a trust boundary; "none" at once, or each new client waits for it.
            return Response.of_json({"locations": [], "encodedLocations": "0x0"})
        if path.endswith(":generateAccessToken"):
            expires = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=LIFETIME_S)
            return Response.of_json({"accessToken": _token(), "expireTime": expires.strftime("%Y-%m-%dT%H:%M:%SZ")})
        if path.endswith(":generateIdToken"):
            return Response.of_json({"token": self._id_token(json.loads(body or b"{}").get("audience", ""))})
        if path.endswith(":signBlob"):
            signature = self._signer.sign(base64.b64decode(json.loads(body)["payload"]))
            return Response.of_json({"keyId": self._account.key_id, "signedBlob": base64.b64encode(signature).decode()})
        return _not_found(path)

    def _resource_manager(self, path: str) -> Response:
        match = re.fullmatch(r"/v[13]/projects/([^/:]+)", path)
        if match is None:
            return _not_found(path)
        project = self._projects.find(match.group(1))
        if project is None:
            return Response.of_error(403, f"Project {match.group(1)} does not exist here.", "PERMISSION_DENIED")
        number = self._projects.number(project)
        return Response.of_json(
            {
                "name": f"projects/{number}" if "/v3/" in path else project,
                "projectId": project,
                "projectNumber": number,
                "displayName": "Local cloud",
                "state": "ACTIVE",
                "lifecycleState": "ACTIVE",
            }
        )

    def _id_token(self, audience: str) -> str:
        now = int(dt.datetime.now(dt.UTC).timestamp())
        claims = {
            "iss": "https://accounts.google.com",
            "aud": audience,
            "email": self._account.email,
            "iat": now,
            "exp": now + LIFETIME_S,
        }
        return bytes(jwt.encode(self._signer, claims)).decode()


def _token() -> str:
    return f"local.{secrets.token_urlsafe(24)}"


def _token_error(error: str, description: str) -> Response:
    return Response.of_json({"error": error, "error_description": description}, 400)


def _not_found(path: str) -> Response:
    return Response.of_error(404, f"{path} is not part of the local cloud", "NOT_FOUND")
