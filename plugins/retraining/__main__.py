"""`python -m retraining models | run MODEL | why MODEL | runs MODEL | compare RUN RUN | replay RUN`."""

import sys

from retraining.commands.daily import main

if __name__ == "__main__":
    sys.exit(main())
