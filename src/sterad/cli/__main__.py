"""`python -m sterad.cli`, for where the `sterad` script is not on the path."""

import sys

from sterad.cli import main

sys.exit(main())
