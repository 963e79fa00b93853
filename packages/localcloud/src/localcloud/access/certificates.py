"""The gateway's own certificate authority: one root for life, and a certificate for each host a client asks for.

In: the state directory (the root is kept there, because gRPC reads its roots once per process and must find the same
one after a restart). Out: a TLS server context per host.
"""

from __future__ import annotations

import functools
import re
import ssl

import trustme

from localcloud.state import State

# In the server's order of preference. gRPC offers only h2, so h2 always means gRPC; a client that offers both (curl)
# gets HTTP/1.1, which every service here speaks.
PROTOCOLS = ["http/1.1", "h2"]

PRIVATE_NAME = "*.prediction.p.vertexai.goog"
"""In the certificate of all private endpoints of Vertex AI, which no authority that clients know has signed.
https://cloud.google.com/vertex-ai/docs/predictions/private-service-connect"""


class Authority:
    """A root certificate and the per-host certificates it signs on demand."""

    def __init__(self, state: State) -> None:
        self._root = _load_or_create(state)
        self._private_root = trustme.CA(organization_name="Google", organization_unit_name="Vertex AI")
        self.server_context = functools.cache(self._server_context)

    def _server_context(self, host: str) -> ssl.SSLContext:
        """Make the TLS context that answers for a host name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(PROTOCOLS)
        if _is_private(host):  # signed by nobody that a client trusts, and of one name, as the service's
            self._private_root.issue_cert(PRIVATE_NAME).configure_cert(context)
        else:
            self._root.issue_cert(host).configure_cert(context)
        return context


def _is_private(host: str) -> bool:
    """Whether a host is a private endpoint: an address, or a name of the domain that a network maps to it."""
    return host.endswith(PRIVATE_NAME.removeprefix("*")) or re.fullmatch(r"[0-9.]+", host) is not None


def _load_or_create(state: State) -> trustme.CA:
    if state.authority_path.exists() and state.authority_key_path.exists():
        return trustme.CA.from_pem(state.authority_path.read_bytes(), state.authority_key_path.read_bytes())
    root = trustme.CA(organization_name="Local cloud", organization_unit_name="for development and tests only")
    state.authority_key_path.touch(mode=0o600)
    root.private_key_pem.write_to_path(state.authority_key_path)
    root.cert_pem.write_to_path(state.authority_path)
    return root
