"""The made-up service account of a local cloud: a key file with a real RSA key, made once per state directory.

In: the state directory. Out: credentials.json for GOOGLE_APPLICATION_CREDENTIALS. No real service knows this account.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcloud.state import PROJECT, State

TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address, not a secret
ACCOUNT_EMAIL = f"local-cloud@{PROJECT}.iam.gserviceaccount.com"


@dataclass(frozen=True, kw_only=True)
class ServiceAccount:
    """The account: its e-mail and its key pair (PEM)."""

    email: str
    key_id: str
    private_key_pem: str

    @property
    def public_key_pem(self) -> str:
        """The public half of the key, to verify what clients sign."""
        private = serialization.load_pem_private_key(self.private_key_pem.encode(), password=None)
        encoded = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return encoded.decode()


def load_or_create(state: State) -> ServiceAccount:
    """Give the state directory's service account, made on first use (file mode 0600)."""
    if not state.key_path.exists():
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        document = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "local-cloud-key",
            "private_key": pem.decode(),
            "client_email": ACCOUNT_EMAIL,
            "client_id": "100000000000000000001",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": TOKEN_URI,
            "universe_domain": "googleapis.com",
        }
        temporary = state.key_path.with_suffix(".new")
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(document, indent=2) + "\n")
        temporary.replace(state.key_path)
    key = json.loads(state.key_path.read_bytes())
    return ServiceAccount(email=key["client_email"], key_id=key["private_key_id"], private_key_pem=key["private_key"])
