"""Runs a server that can only listen on a TCP port so that nobody but this cloud's gateway reaches it.

In: a command, the port it listens on, and a unix socket. Out: the server in a network namespace of its own, whose
loopback no other process of the machine sees; who may open the unix socket gets connections to it: each is made in
there and handed over. No byte goes through this process.

Where the kernel makes no network namespace for us (some containers), the server listens on the machine's loopback: the
log says so, and docs/security.md what that means.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from localcloud.supervision import processes

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_READY_TIMEOUT_S = 60
OPEN_PORT = "OPEN PORT"


def enter() -> bool:
    """Move this process, which must have one thread, into a network namespace of its own; tell whether that worked."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return False
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    return True


def hand_out(listener: socket.socket, port: int) -> None:
    """Give whoever connects a connection to the server, for ever."""
    while True:
        client, _ = listener.accept()
        # suppressed: a client that is gone, a server that ends
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            descriptor = array.array("i", [connection.fileno()])
            client.sendmsg([b"+"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)])


def run_enclosed(command: Callable[[int], list[str]], socket_path: Path) -> int:
    """Run a server until it ends; gives its exit code.

    Args:
        command: Gives its command line, from the port that it is to listen on.
        socket_path: Where connections to it are handed out, once it accepts them.
    """
    enclosed = enter()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if not enclosed:
        print(f"{OPEN_PORT} {port} on 127.0.0.1: no network namespace can be made here", file=sys.stderr, flush=True)
    server = processes.tie(command(port))
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    end = time.monotonic() + _READY_TIMEOUT_S
    while server.poll() is None and not processes.accepts(port) and time.monotonic() < end:
        time.sleep(0.01)
    socket_path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(socket_path))
        listener.listen(512)
        threading.Thread(target=hand_out, args=(listener, port), daemon=True).start()
        return _code(server)


def _code(server: subprocess.Popen[bytes]) -> int:
    code = server.wait()
    if code < 0:  # say it as the server itself would: the one that watches names the signal
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        time.sleep(1)  # the signal is on its way
    return code
