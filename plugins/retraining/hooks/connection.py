"""Who calls Google Cloud: the credentials of the Airflow connection, and which failures are worth another try.

Comes in: a connection id. Goes out: google-auth credentials (impersonation included) for clients made elsewhere. The
high-level Vertex SDK is not used: it falls back to default credentials without a word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from google.auth.credentials import Credentials

RETRY_INITIAL_S = 0.5
RETRY_MAXIMUM_S = 20.0
RETRY_TIMEOUT_S = 120.0


def credentials(gcp_conn_id: str) -> Credentials:
    """Return the connection's credentials, as the Google provider resolves them."""
    from airflow.providers.google.common.hooks.base_google import GoogleBaseHook

    return GoogleBaseHook(gcp_conn_id=gcp_conn_id).get_credentials()


def transient_errors() -> tuple[type[Exception], ...]:
    """Return the errors after which the same call may succeed: unavailable, overloaded, broken off."""
    from google.api_core import exceptions

    return (
        exceptions.ServiceUnavailable,
        exceptions.TooManyRequests,
        exceptions.InternalServerError,
        exceptions.BadGateway,
        exceptions.GatewayTimeout,
        exceptions.DeadlineExceeded,
        ConnectionError,
    )


def repeat() -> Retry:
    """Return the back-off for calls that may be repeated: reads, and writes that say the same twice."""
    from google.api_core.retry import Retry, if_exception_type

    return Retry(
        predicate=if_exception_type(*transient_errors()),
        initial=RETRY_INITIAL_S,
        maximum=RETRY_MAXIMUM_S,
        timeout=RETRY_TIMEOUT_S,
    )


def vertex_endpoint(region: str) -> str:
    """Return the host of a region's Vertex AI."""
    return f"{region}-aiplatform.googleapis.com"
