"""`python -m sterad.cli`: the command line without the `sterad` script."""

import sys

from sterad.cli import main

sys.exit(main())
