"""`python -m retraining_laptop`: runs the story of one night as a child, and leaves no process behind.

Comes in: options of `retraining_laptop.night`, from `retraining demo`. Goes out: its exit code.
"""

import sys

from retraining_laptop.supervision import supervise

if __name__ == "__main__":
    sys.exit(supervise("retraining_laptop.night", sys.argv[1:], "retraining demo"))
