"""Prints a `.env` with fresh random secrets for docker-compose.yaml. Standard library only."""

from __future__ import annotations

import base64
import secrets


def environment() -> dict[str, str]:
    """Return name and value of every secret that docker-compose.yaml asks for."""
    return {
        "POSTGRES_PASSWORD": secrets.token_urlsafe(24),
        "AIRFLOW_FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW_JWT_SECRET": secrets.token_urlsafe(48),
        "AIRFLOW_SECRET_KEY": secrets.token_urlsafe(48),
    }


if __name__ == "__main__":
    for name, value in environment().items():
        print(f"{name}={value}")
