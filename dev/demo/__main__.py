"""`python -m demo`: runs the demonstration as a child, and leaves no process behind whichever of the two dies.

Comes in: options of `make demo`. Goes out: the exit code of `demo.story`.
"""

import sys

from retraining_laptop.supervision import supervise

if __name__ == "__main__":
    sys.exit(supervise("demo.story", sys.argv[1:], "demo"))
