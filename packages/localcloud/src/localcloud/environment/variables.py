"""The environment variables that make unmodified Google clients talk to a local cloud.

In: a state directory of a local cloud that was started at least once. Out: names and values; an empty value means
"unset this". Which client reads which variable: requests and google-auth REQUESTS_CA_BUNDLE and HTTPS_PROXY, gRPC
lower-case https_proxy and GRPC_DEFAULT_SSL_ROOTS_FILE_PATH, TensorFlow's gs:// (libcurl) CURL_CA_BUNDLE,
googleapiclient HTTPLIB2_CA_CERTS (and a proxy only with PySocks installed), aiohttp and httpx SSL_CERT_FILE, gcloud
and bq CLOUDSDK_*, gsutil the file of BOTO_CONFIG. PYTHONPATH leads to `client_site`, which lets aiohttp heed the
proxy; it goes before what there is.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from localcloud.access.bearer import Bearers
from localcloud.access.credentials import ACCOUNT_EMAIL, TOKEN_URI, Accounts
from localcloud.environment.config import remembered_config
from localcloud.state import Settings, State

NO_PROXY = "127.0.0.1,localhost"
CLIENT_SITE_PATH = Path(__file__).with_name("client_site")
# TensorFlow's gs:// takes one token for the life of its process: as long as the longest job of Vertex AI, seven days.
TENSORFLOW_TOKEN_LIFETIME_S = 7 * 24 * 3600


def client_environment(
    state_path: Path | str, *, gateway_host: str | None = None, account: str = ACCOUNT_EMAIL
) -> dict[str, str]:
    """Return every variable a client process needs to use the local cloud of this state directory.

    Args:
        state_path: state directory of the local cloud.
        gateway_host: name under which this client reaches the gateway; default the address it listens on
            (in containers: the name of the local cloud's container).
        account: e-mail address of the service account that the client is; it gets a key.

    Returns:
        Names and values. An empty value means that the variable must not be set (SSL_CERT_DIR); passing it on as
        an empty string has the same effect for OpenSSL, curl and httpx.

    Raises:
        LocalCloudError: no local cloud was started there yet.
    """
    state = State(Path(state_path).absolute())
    return {
        **google_environment(state, gateway_host=gateway_host, account=account),
        **remembered_config(state).client_variables(state.read_settings()),
    }


def google_environment(
    state: State, *, gateway_host: str | None = None, account: str = ACCOUNT_EMAIL
) -> dict[str, str]:
    """Return the variables without those of `up --config`: what a container of Google's own gets; else as above."""
    settings = state.read_settings()
    host = gateway_host or ("127.0.0.1" if settings.gateway_host == "0.0.0.0" else settings.gateway_host)  # noqa: S104 - compared, not bound
    gateway = f"http://{host}:{settings.ports['gateway']}"
    return {
        "LOCALCLOUD_STATE": str(state.path),
        "PYTHONPATH": str(CLIENT_SITE_PATH),
        **_transport(gateway, str(state.authority_path)),
        **_identity(state, settings, account),
        **_command_line_tools(state, settings, account, gateway),
    }


def merged_environment(state_path: Path | str, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a whole process environment: `base` (default this process's) with the client variables laid over it."""
    before = os.environ if base is None else base
    merged = {**before, **client_environment(state_path)}
    paths = dict.fromkeys([str(CLIENT_SITE_PATH), *before.get("PYTHONPATH", "").split(os.pathsep)])
    merged["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return {name: value for name, value in merged.items() if value or name not in _UNSET}


_UNSET = ("SSL_CERT_DIR", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


def _transport(gateway: str, authority: str) -> dict[str, str]:
    proxies = dict.fromkeys(("https_proxy", "HTTPS_PROXY", "grpc_proxy"), gateway)
    exceptions = dict.fromkeys(("no_proxy", "NO_PROXY", "no_grpc_proxy"), NO_PROXY)
    root_names = (
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "SSL_CERT_FILE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        "HTTPLIB2_CA_CERTS",
        "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    )
    roots = dict.fromkeys(root_names, authority)
    return {**proxies, **exceptions, **roots, **dict.fromkeys(_UNSET, "")}


def _identity(state: State, settings: Settings, account: str) -> dict[str, str]:
    key_path = str(Accounts(state).key_path(account))
    extra = {
        "key_path": key_path,
        "project": settings.project,
        "gcs.session-kwargs": {"trust_env": True},  # gcsfs (aiohttp) uses a proxy only when set to
    }
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": key_path,
        "GOOGLE_CLOUD_PROJECT": settings.project,
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": json.dumps({"conn_type": "google_cloud_platform", "extra": extra}),
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": Bearers(state).issue(account, TENSORFLOW_TOKEN_LIFETIME_S),
        "NO_GCE_CHECK": "true",
    }


def _command_line_tools(state: State, settings: Settings, account: str, gateway: str) -> dict[str, str]:
    return {
        "BOTO_CONFIG": str(_write_boto(state, settings, account, gateway)),
        "CLOUDSDK_CONFIG": str(state.path / "gcloud"),
        "CLOUDSDK_CORE_PROJECT": settings.project,
        "CLOUDSDK_COMPUTE_REGION": settings.region,
        "CLOUDSDK_AI_REGION": settings.region,
        "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE": str(Accounts(state).key_path(account)),
        "CLOUDSDK_CORE_CHECK_GCE_METADATA": "false",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "CLOUDSDK_SURVEY_DISABLE_PROMPTS": "true",
    }


def _write_boto(state: State, settings: Settings, account: str, gateway: str) -> Path:
    """Write what gsutil reads, which takes neither the variables nor the key that Google's other clients take.

    A container that has the state for reading only gets the file in a folder of its own.
    """
    digest = hashlib.sha256(f"{account} {gateway}".encode()).hexdigest()[:16]
    path = state.directory("gcloud") / f"boto-{digest}"
    try:
        return _write_whole(path, _render_boto(state, settings, account, gateway, path.parent))
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="localcloud-gcloud-")) / path.name
        return _write_whole(path, _render_boto(state, settings, account, gateway, path.parent))


def _render_boto(state: State, settings: Settings, account: str, gateway: str, folder: Path) -> str:
    address = urlsplit(gateway)
    sections: dict[str, dict[str, object]] = {
        "Credentials": {"gs_service_key_file": str(Accounts(state).key_path(account))},
        "OAuth2": {"provider_token_uri": TOKEN_URI},
        "Boto": {
            "proxy": address.hostname,
            "proxy_port": address.port,
            "proxy_type": "http",
            "ca_certificates_file": str(state.authority_path),
        },
        "GSUtil": {
            "default_project_id": settings.project,
            "state_dir": str(folder / "gsutil"),
            "software_update_check_period": 0,
        },
    }
    lines = []
    for section, values in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in values.items()), ""]
    return "\n".join(lines)


def _write_whole(path: Path, text: str) -> Path:
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")  # several jobs may start at once
    temporary.write_text(text)
    temporary.replace(path)
    return path


def render_exports(environment: Mapping[str, str]) -> str:
    """Render lines for a shell's `eval`: `export NAME=value`, or `unset NAME` for an empty value.

    PYTHONPATH goes before the shell's own.
    """

    def line(name: str, value: str) -> str:
        if not value:
            return f"unset {name}"
        rest = '"${PYTHONPATH:+:$PYTHONPATH}"' if name == "PYTHONPATH" else ""
        return f"export {name}={shlex.quote(value)}{rest}"

    return "\n".join(line(name, value) for name, value in environment.items())
