"""Who you are, in a cloud with made-up accounts: tokens, impersonation, the project's own record, and what you may.

In: requests to oauth2, iamcredentials, iam and cloudresourcemanager. Out: what google-auth, gcloud and the SDK expect.
`testIamPermissions` and `getIamPolicy` answer from the IAM table.
Tokens are given only for assertions that a key of this state directory signed; every service asks for one (`bearer`).
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote

from google.auth import crypt, jwt

from localcloud.access.bearer import BearerError, Bearers
from localcloud.access.credentials import TOKEN_URI, Accounts, ServiceAccount
from localcloud.access.iam import Iam
from localcloud.access.iam_calls import project_of
from localcloud.errors import CallError
from localcloud.gateway.resource_manager import FIELDS
from localcloud.http.fronts import Call, Front
from localcloud.http.http1 import Request, Response
from localcloud.projects import Projects

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LIFETIME_S = 3600
MOST_PERMISSIONS = 100
"""Of one `testIamPermissions`, as the service takes."""
_ACCOUNT = re.compile(r"/v1/projects/-/serviceAccounts/(?P<email>[^/:]+)[/:](?P<verb>\w+)")
_PROJECT = re.compile(r"/v[13]/projects/(?P<project>[^/:]+)")
_ASKED_OF_PROJECT = re.compile(r"/v[13](?P<resource>/projects/[^/:]+):(?P<verb>testIamPermissions|getIamPolicy)")
_ASKED_OF_ACCOUNT = re.compile(r"/v1/projects/(?P<project>[^/]+)/serviceAccounts/(?P<email>[^/:]+):testIamPermissions")


@dataclass(frozen=True, kw_only=True)
class IdentityCall(Call):
    """A call of an identity host: its request, whose path says all that its method does not."""

    request: Request

    @property
    def asks_the_table(self) -> bool:
        """Whether the IAM table is what it asks about."""
        return self.method.endswith((".TestIamPermissions", ".GetIamPolicy"))


class Identity(Front[IdentityCall]):
    """Answers for the identity hosts."""

    def __init__(
        self, own: ServiceAccount, accounts: Accounts, bearers: Bearers, *, projects: Projects, iam: Iam
    ) -> None:
        self._accounts = accounts
        self._own = own
        self._bearers = bearers
        self._projects = projects
        self._iam = iam

    async def read_call(self, request: Request) -> IdentityCall:
        """Read a request: whose token, signature or project it asks for."""
        if request.host == "oauth2.googleapis.com":
            if request.path not in ("/token", "/tokeninfo"):
                raise CallError(f"{request.path} is not part of the local cloud", "NOT_FOUND")
            return IdentityCall(method=f"oauth2.{request.path.removeprefix('/')}", request=request)
        if asked := self._read_question(request):
            return asked
        if account := _ACCOUNT.fullmatch(unquote(request.path)):
            name = f"projects/{project_of(account['email'])}/serviceAccounts/{account['email']}"
            return IdentityCall(
                method=f"iamcredentials.{account['verb']}",
                resources={"service_account": [name]},
                about=account["email"],
                request=request,
            )
        if project := _PROJECT.fullmatch(request.path):
            FIELDS.check_parameters("Projects.GetProject", request.query)
            name = f"projects/{project['project']}"
            return IdentityCall(
                method="Projects.GetProject", resources={"project": [name]}, about=name, request=request
            )
        return IdentityCall(method=f"{request.host} {request.path}", request=request)

    def _read_question(self, request: Request) -> IdentityCall | None:
        """Read a question about the IAM table; None: it is none."""
        path = unquote(request.path)
        if request.host.startswith("iam.") and (account := _ASKED_OF_ACCOUNT.fullmatch(path)):
            project = project_of(account["email"]) if account["project"] == "-" else account["project"]
            kind, method = "service_account", "ServiceAccounts.TestIamPermissions"
            name = f"projects/{project}/serviceAccounts/{account['email']}"
        elif request.host.startswith("cloudresourcemanager.") and (asked := _ASKED_OF_PROJECT.fullmatch(path)):
            kind, method = "project", f"Projects.{asked['verb'][0].upper()}{asked['verb'][1:]}"
            name = asked["resource"].strip("/")
        else:
            return None
        return IdentityCall(method=method, resources={kind: [name]}, about=name, request=request)

    async def answer_call(self, call: IdentityCall) -> Response:
        """Answer a call."""
        request = call.request
        if call.asks_the_table:
            return self._ask_table(call, await request.read_body())
        service = request.host.split(".")[0]
        if service == "oauth2":
            return self._oauth2(request, await request.read_body())
        if service == "iamcredentials":
            return self._iam_credentials(request.path, await request.read_body(), request.principal)
        return self._resource_manager(request.path)

    def _ask_table(self, call: IdentityCall, body: bytes) -> Response:
        """Answer `testIamPermissions` and `getIamPolicy` of a project or a service account."""
        project = call.about.split("/")[1]
        if self._projects.find_id(project) is None:
            return Response.of_error(403, f"Project {project} does not exist here.", "PERMISSION_DENIED")
        if call.method.endswith(".GetIamPolicy"):
            return Response.of_json(self._iam.policy(call.about))
        granted = self._iam.granted(call.request.principal, read_permissions(body), call.about)
        return Response.of_json({"permissions": granted} if granted else {})

    def _oauth2(self, request: Request, body: bytes) -> Response:
        form = {name: values[0] for name, values in parse_qs(body.decode(errors="replace")).items()}
        if request.path == "/tokeninfo":
            return self._describe({**form, **request.query}.get("access_token", ""))
        if form.get("grant_type") != JWT_BEARER:
            return _token_error("unsupported_grant_type", f"Expected grant_type {JWT_BEARER}.")
        try:
            issuer = jwt.decode(form.get("assertion", ""), verify=False).get("iss")
            account = self._accounts.find_account(str(issuer))
            if account is None:
                return _token_error("invalid_grant", f"Invalid JWT: account {issuer} does not exist here.")
            claims = jwt.decode(form["assertion"], certs=account.public_key_pem, audience=TOKEN_URI)
        except (ValueError, TypeError, AttributeError) as error:
            return _token_error("invalid_grant", f"Invalid JWT: {error}")
        if "target_audience" in claims:
            return Response.of_json({"id_token": _id_token(account, account.email, str(claims["target_audience"]))})
        token = self._bearers.issue(account.email, LIFETIME_S)
        return Response.of_json({"access_token": token, "expires_in": LIFETIME_S, "token_type": "Bearer"})

    def _describe(self, token: str) -> Response:
        try:
            email, end = self._bearers.holder(token)
        except BearerError:
            return _token_error("invalid_token", "Invalid Value")
        left_s = int(end - dt.datetime.now(dt.UTC).timestamp())
        return Response.of_json({"email": email, "expires_in": str(left_s), "scope": ""})

    def _iam_credentials(self, path: str, body: bytes, principal: str) -> Response:
        named = _ACCOUNT.fullmatch(unquote(path))
        if named is None:
            return _unknown_path(path)
        email, verb = named["email"], named["verb"]
        if email == self._own.email != principal and verb != "allowedLocations":
            message = f"{principal} may not act as {email}, who owns this local cloud, its faults and its IAM table."
            return Response.of_error(403, message, "PERMISSION_DENIED")
        if verb == "allowedLocations":
            # google-auth asks for a trust boundary; "none" at once, or each new client waits for it.
            return Response.of_json({"locations": [], "encodedLocations": "0x0"})
        if verb == "generateAccessToken":
            expires = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=LIFETIME_S)
            token = self._bearers.issue(email, LIFETIME_S)
            return Response.of_json({"accessToken": token, "expireTime": expires.strftime("%Y-%m-%dT%H:%M:%SZ")})
        try:
            document = json.loads(body or b"{}")
            if verb == "generateIdToken":
                return Response.of_json({"token": _id_token(self._own, email, str(document.get("audience", "")))})
            account = self._accounts.find_account(email)
            if verb != "signBlob" or account is None:
                return _unknown_path(path)
            signature = _signer(account).sign(base64.b64decode(document["payload"]))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return Response.of_error(400, f"Invalid JSON payload received. {error!r}", "INVALID_ARGUMENT")
        return Response.of_json({"keyId": account.key_id, "signedBlob": base64.b64encode(signature).decode()})

    def _resource_manager(self, path: str) -> Response:
        match = _PROJECT.fullmatch(path)
        if match is None:
            return _unknown_path(path)
        project = self._projects.find_id(match["project"])
        if project is None:
            return Response.of_error(403, f"Project {match['project']} does not exist here.", "PERMISSION_DENIED")
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


def read_permissions(body: bytes) -> list[str]:
    """Read the body of a `testIamPermissions`.

    Raises:
        CallError: It is none.
    """
    try:
        document = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        document = None
    permissions = document.get("permissions") if isinstance(document, dict) else None
    if not isinstance(permissions, list) or not 1 <= len(permissions) <= MOST_PERMISSIONS:
        raise CallError(f"Expected permissions, 1 to {MOST_PERMISSIONS} of them.", "INVALID_ARGUMENT")
    if wrong := [each for each in permissions if not re.fullmatch(r"[a-z]\w*(\.\w+){2}", str(each))]:
        raise CallError(f"Permission {wrong[0]!r} is not valid for this resource.", "INVALID_ARGUMENT")
    return permissions


def _id_token(signer: ServiceAccount, email: str, audience: str) -> str:
    now = int(dt.datetime.now(dt.UTC).timestamp())
    claims = {
        "iss": "https://accounts.google.com",
        "aud": audience,
        "email": email,
        "iat": now,
        "exp": now + LIFETIME_S,
    }
    return bytes(jwt.encode(_signer(signer), claims)).decode()


def _signer(account: ServiceAccount) -> crypt.RSASigner:
    return crypt.RSASigner.from_string(account.private_key_pem, account.key_id)


def _token_error(error: str, description: str) -> Response:
    return Response.of_json({"error": error, "error_description": description}, 400)


def _unknown_path(path: str) -> Response:
    return Response.of_error(404, f"{path} is not part of the local cloud", "NOT_FOUND")
