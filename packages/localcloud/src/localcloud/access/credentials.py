"""The made-up service accounts of a local cloud: key files with real RSA keys, made once per state directory.

In: the state directory. Out: credentials.json for GOOGLE_APPLICATION_CREDENTIALS, and a key file for each other account
that something runs as. No real service knows these accounts.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localcloud.state import PROJECT, State

TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address, not a secret
ACCOUNT_EMAIL = f"local-cloud@{PROJECT}.iam.gserviceaccount.com"
PROJECT_NUMBER = "123456789012"
# https://cloud.google.com/vertex-ai/docs/general/access-control#service-agents: Vertex AI itself, and custom code that
# names no account.
SERVICE_AGENT = f"service-{PROJECT_NUMBER}@gcp-sa-aiplatform.iam.gserviceaccount.com"
CUSTOM_CODE_AGENT = f"service-{PROJECT_NUMBER}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
_EMAIL = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}@[a-z0-9][a-z0-9.-]{0,62}\.gserviceaccount\.com")


@dataclass(frozen=True, kw_only=True)
class ServiceAccount:
    """The account: its e-mail and its key pair (PEM)."""

    email: str
    key_id: str
    private_key_pem: str

    @property
    def public_key_pem(self) -> str:
        """The public half of the key, to verify what clients sign."""
        from cryptography.hazmat.primitives import serialization

        private = serialization.load_pem_private_key(self.private_key_pem.encode(), password=None)
        encoded = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return encoded.decode()


class Accounts:
    """The service accounts of a state directory, by e-mail address."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[str, ServiceAccount] = {}

    def find_account(self, email: str) -> ServiceAccount | None:
        """Return an account that has a key, None for any other."""
        path = self._path(email)
        if path is None or not path.exists():
            return None
        if email not in self._known:
            account = _load(path)
            if account.email != email:
                return None
            self._known[email] = account
        return self._known[email]

    def key_path(self, email: str) -> Path:
        """Return an account's key file, made on first use (file mode 0600).

        Raises:
            ValueError: this is no address of a service account.
        """
        path = self._path(email)
        if path is None:
            raise ValueError(f"{email!r} is no service account's address (name@project.iam.gserviceaccount.com)")
        if not path.exists():
            _create(path, email)
        return path

    def _path(self, email: str) -> Path | None:
        if email == ACCOUNT_EMAIL:
            return self._state.key_path
        return self._state.path / "accounts" / f"{email}.json" if _EMAIL.fullmatch(email) else None


def load_or_create(state: State) -> ServiceAccount:
    """Return the state directory's own service account, made on first use."""
    return _load(Accounts(state).key_path(ACCOUNT_EMAIL))


def _create(path: Path, email: str) -> None:
    from cryptography.hazmat.primitives import serialization  # not needed where a key is there already
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    document = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "local-cloud-key",
        "private_key": pem.decode(),
        "client_email": email,
        "client_id": "100000000000000000001",
        "auth_uri": "https://accounts.google.com/o/oauth2/auth",
        "token_uri": TOKEN_URI,
        "universe_domain": "googleapis.com",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.new")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(document, indent=2) + "\n")
    with suppress(FileExistsError):
        os.link(temporary, path)  # of two at once the first one's key stays
    temporary.unlink()


def _load(path: Path) -> ServiceAccount:
    key = json.loads(path.read_bytes())
    return ServiceAccount(email=key["client_email"], key_id=key["private_key_id"], private_key_pem=key["private_key"])
