"""`python -m localcloud`."""

import sys

from localcloud.command.cli import main

sys.exit(main())
