"""Who calls Google Cloud, and how patiently.

In: settings and an Airflow connection. Out: credentials, the Vertex AI host, retries for transient errors, and one
clear message for those that no retry mends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from retraining.core.errors import GRANT, RetrainingError, SettingsError
from retraining.core.naming.environments import Environment, label_of
from retraining.core.placement import NOBODY, Caller, Placement
from retraining.core.settings import Settings
from retraining.hooks import limits

LOGGER = logging.getLogger(__name__)
SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Session:
    """What every hook needs: where, for which environment, and as whom. `credentials` are google-auth credentials.

    `max_bytes_billed` is of one statement on BigQuery; `caller` is the task that asks.
    """

    project: str
    region: str
    environment: Environment
    max_bytes_billed: int
    credentials: Any  # google.auth.credentials.Credentials, not imported at parse time
    placement: Placement = field(default_factory=Placement)
    caller: Caller = NOBODY

    def labels(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the labels of what is made.

        Args:
            own: By which it is found again, or told from others.
        """
        return {**self.placement.labels, **self.caller.labels, **own, **self.environment.labels}

    @property
    def client_options(self) -> dict[str, str]:
        """Vertex AI answers per region only. The retries of `call` replace those of the client."""
        return {"api_endpoint": f"{self.region}-aiplatform.googleapis.com"}


def connect(settings: Settings, caller: Caller = NOBODY) -> Session:
    """Return the credentials of the Airflow connection that the settings name.

    Args:
        settings: Where things are.
        caller: The task that asks.

    Raises:
        SettingsError: The connection is missing, or its credentials cannot be used.
    """
    from airflow.providers.google.common.hooks.base_google import GoogleBaseHook
    from google.auth.exceptions import GoogleAuthError

    from retraining.hooks.airflow_exceptions import AirflowException

    where = f"Airflow connection {settings.gcp_conn_id!r}"
    try:
        hook = GoogleBaseHook(gcp_conn_id=settings.gcp_conn_id)
        credentials, _ = hook.get_credentials_and_project_id()
    except (AirflowException, GoogleAuthError, KeyError, OSError, ValueError) as error:
        raise SettingsError(
            where, f"no usable credentials ({error})", "a google_cloud_platform connection", "Create or correct it"
        ) from error
    return _session(settings, credentials, caller)


def connect_by_environment(settings: Settings) -> Session:
    """Return this machine's own credentials (`gcloud auth application-default login`).

    Raises:
        google.auth.exceptions.DefaultCredentialsError: There are none; `explain` has the way out.
    """
    return _session(settings, _own_credentials(), NOBODY)


def own_session(project: str, region: str, max_bytes_billed: int = 0) -> Session:
    """Return a project and region without other settings, asked with this machine's own credentials.

    Raises:
        google.auth.exceptions.DefaultCredentialsError: There are none; `explain` has the way out.
    """
    return Session(
        project=project,
        region=region,
        environment=Environment(label="check-models", bucket=""),
        max_bytes_billed=max_bytes_billed,
        credentials=_own_credentials(),
    )


def _own_credentials() -> object:
    import google.auth

    credentials, _ = google.auth.default(scopes=list(SCOPES))
    return credentials


def _session(settings: Settings, credentials: object, caller: Caller) -> Session:
    return Session(
        project=settings.project,
        region=settings.region,
        environment=Environment(label=label_of(settings.environment), bucket=settings.bucket),
        max_bytes_billed=settings.max_bytes_billed,
        credentials=credentials,
        placement=settings.placement,
        caller=caller,
    )


def is_transient(error: BaseException) -> bool:
    """Return whether the same call may pass a moment later: 429, 500, 502, 503, 504, or a broken connection."""
    from google.api_core import exceptions
    from google.auth.exceptions import TransportError
    from requests import exceptions as requests_exceptions
    from urllib3 import exceptions as urllib3_exceptions

    kinds = (
        exceptions.TooManyRequests,
        exceptions.InternalServerError,
        exceptions.BadGateway,
        exceptions.ServiceUnavailable,
        exceptions.GatewayTimeout,
        exceptions.Unknown,  # a gRPC stream that broke
        exceptions.RetryError,
        TransportError,
        # What Cloud Storage's and BigQuery's clients give: none of them is a builtin ConnectionError.
        requests_exceptions.ConnectionError,
        requests_exceptions.Timeout,
        requests_exceptions.ChunkedEncodingError,
        # What they give of an answer that is read as it comes.
        urllib3_exceptions.ProtocolError,
        urllib3_exceptions.TimeoutError,
        ConnectionError,
        TimeoutError,
    )
    return isinstance(error, kinds)


def may_have_worked(error: BaseException) -> bool:
    """Return whether a call that was to change something may have done so, or may yet.

    It has no answer, or one of trouble.
    """
    from google.api_core import exceptions

    if isinstance(error, exceptions.ClientError):
        return isinstance(error, exceptions.Cancelled)
    return is_transient(error) or isinstance(error, exceptions.GoogleAPICallError)


def is_exhausted(error: BaseException) -> bool:
    """Return whether a quota is used up, or there are no machines: 429."""
    from google.api_core import exceptions

    return isinstance(error, exceptions.TooManyRequests)


def is_refused(error: BaseException) -> bool:
    """Return whether what was asked for is not there, or cannot be as it was asked: 400 and 404."""
    from google.api_core import exceptions

    return isinstance(error, exceptions.BadRequest | exceptions.NotFound)


def is_outage(error: BaseException) -> bool:
    """Return whether a service does not answer now and may a while later; a quota that is used up is none."""
    return is_transient(error) and not is_exhausted(error)


def call(function: Callable[[], _T], *, timeout_s: float | None = None, max_bytes: int | None = None) -> _T:
    """Call until it passes: transient errors are retried with growing waits.

    Only for calls that may be repeated. What is not transient, and the last transient error, is raised.

    Args:
        function: Asks a client of `transports.py`, whose own retries are off.
        timeout_s: Of all of it, by the clock, however slowly the answer comes; None: `limits.CALL_S`.
        max_bytes: Of all that it reads; None: `limits.MAX_BYTES`.
    """
    seconds = limits.CALL_S if timeout_s is None else timeout_s
    with limits.limited(seconds, limits.MAX_BYTES if max_bytes is None else max_bytes) as limit:
        return retry(function, limit.end - time.monotonic())  # a limit around this one may end earlier


def retry(function: Callable[[], _T], patience_s: float) -> _T:
    """Call until it passes, within a limit that is under way: transient errors are retried with growing waits.

    Args:
        function: May be repeated.
        patience_s: So long it is tried again.
    """
    from google.api_core.exceptions import RetryError
    from google.api_core.retry import Retry

    def warn(error: Exception) -> None:
        LOGGER.warning("%s: %s; it may pass", type(error).__name__, error)

    patiently = Retry(predicate=is_transient, initial=0.5, maximum=15.0, timeout=patience_s, on_error=warn)
    try:
        answer: _T = patiently(function)()
    except RetryError as error:
        raise error.cause or error from None
    return answer


def call_once(function: Callable[[], _T], *, timeout_s: float | None = None, max_bytes: int | None = None) -> _T:
    """Call, and leave it at that: for what may have been done though no answer came. The limits are those of `call`."""
    seconds = limits.CALL_S if timeout_s is None else timeout_s
    with limits.limited(seconds, limits.MAX_BYTES if max_bytes is None else max_bytes):
        return function()


def explain(error: BaseException) -> RetrainingError | None:
    """Return one message with the way out for an error of Google's that a retry does not mend; None for all others."""
    from google.api_core import exceptions
    from google.auth.exceptions import DefaultCredentialsError, RefreshError

    if isinstance(error, RefreshError | DefaultCredentialsError):
        return SettingsError(
            "Google Cloud credentials",
            f"refused ({error})",
            "credentials that Google Cloud takes",
            "Look at the Airflow connection's key or account",
        )
    if not isinstance(error, exceptions.ClientError) or is_transient(error) or isinstance(error, exceptions.Conflict):
        return None
    message = str(error.message or error)
    if isinstance(error, exceptions.Forbidden | exceptions.Unauthorized):
        way_out = GRANT
    elif isinstance(error, exceptions.NotFound):
        way_out = "Create it, or correct RETRAINING_PROJECT, RETRAINING_REGION, RETRAINING_BUCKET or RETRAINING_DATASET"
    else:
        way_out = "Correct what the message names and clear the task"
    return SettingsError(f"Google Cloud, {type(error).__name__}", message, "an answer", way_out)
