"""`python -m localcloud.testing.attended`: the command line of the local cloud, until standard input ends.

Whoever started it holds the other end of that pipe; the kernel closes it when that process dies, also by SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from localcloud.command.cli import main


def _end_with_starter() -> None:
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_starter, daemon=True).start()
    sys.exit(main())
