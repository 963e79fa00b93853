"""`python -m retraining.replay policy MODEL`."""

import sys

from retraining.commands.policy_replay import main

if __name__ == "__main__":
    sys.exit(main())
