"""A port for a server of a test's own."""

from __future__ import annotations

from localcloud.supervision.processes import choose_ports


def free_port() -> int:
    """Return a TCP port on loopback that nobody listens on now."""
    return choose_ports(["server"], {})["server"]
