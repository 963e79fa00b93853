"""What `env` prints is enough, and is nothing else's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from localcloud.environment.variables import client_environment, merged_environment, render_exports


def test_shell_lines_set_and_unset(local_cloud):
    """`eval "$(localcloud env)"` gives a shell exactly these values."""
    lines = local_cloud.run("env").stdout
    assert "unset SSL_CERT_DIR" in lines
    script = f'{lines}\nprintf \'%s\\n\' "$AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT" "${{SSL_CERT_DIR-unset}}" "$https_proxy"'
    environ = {"SSL_CERT_DIR": "/etc/ssl/certs", "PATH": "/usr/bin:/bin"}
    shown = subprocess.run(
        ["sh", "-c", script], env=environ, text=True, capture_output=True, check=True
    ).stdout.splitlines()
    connection = json.loads(shown[0])
    assert connection["conn_type"] == "google_cloud_platform"
    assert connection["extra"]["key_path"] == local_cloud.env["GOOGLE_APPLICATION_CREDENTIALS"]
    assert shown[1:] == ["unset", local_cloud.env["https_proxy"]]


def test_no_root_of_the_system_is_left(local_cloud):
    """Each variable that names roots names the authority's file."""
    names = [name for name in local_cloud.env if "CA_BUNDLE" in name or "CERT" in name or "ROOTS" in name]
    assert {local_cloud.env[name] for name in names} == {"", str(local_cloud.state_path.absolute() / "authority.pem")}


def test_merged_environment_replaces_and_removes(local_cloud):
    """Over a base of a machine's own settings."""
    base = {
        "SSL_CERT_DIR": "/etc/ssl/certs",
        "http_proxy": "http://proxy:3128",
        "CURL_CA_BUNDLE": "/x",
        "HOME": "/home/me",
        "PYTHONPATH": "/mine",
    }
    merged = merged_environment(local_cloud.state_path, base)
    assert ("SSL_CERT_DIR" in merged, "http_proxy" in merged, merged["HOME"]) == (False, False, "/home/me")
    assert merged["CURL_CA_BUNDLE"] == local_cloud.env["CURL_CA_BUNDLE"]
    assert merged["PYTHONPATH"] == f"{local_cloud.env['PYTHONPATH']}:/mine"


def test_gateway_by_another_name(local_cloud):
    """In containers the gateway is reached by its service's name."""
    port = local_cloud.env["https_proxy"].rsplit(":", 1)[1]
    renamed = client_environment(local_cloud.state_path, gateway_host="localcloud")
    assert renamed["https_proxy"] == renamed["HTTPS_PROXY"] == f"http://localcloud:{port}"


def test_values_are_quoted():
    """Whatever is in them."""
    assert render_exports({"A": "it's $HOME", "B": ""}) == "export A='it'\"'\"'s $HOME'\nunset B"


def test_a_shells_python_path_stays_behind_ours():
    """Set or not."""
    line = render_exports({"PYTHONPATH": "/ours"})
    for before, after in (({}, "/ours"), ({"PYTHONPATH": "/mine"}, "/ours:/mine")):
        script = f"set -u; {line}; echo $PYTHONPATH"
        shown = subprocess.run(["sh", "-c", script], env=before, text=True, capture_output=True, check=True)
        assert shown.stdout == f"{after}\n"


def test_a_state_for_reading_only_will_do(local_cloud, tmp_path):
    """Containers have it so: what gsutil reads then lies elsewhere."""
    state = tmp_path / "state"
    state.mkdir()
    for path in Path(local_cloud.state_path).iterdir():
        (state / path.name).symlink_to(path)
    (state / "gcloud").unlink()
    (state / "gcloud").symlink_to("/proc/self/attr")  # where nobody, not even root, may make a file
    values = client_environment(state, gateway_host="localcloud")
    text = Path(values["BOTO_CONFIG"]).read_text()
    assert "proxy = localcloud" in text
    assert f"ca_certificates_file = {state}/authority.pem" in text
