"""`python -m remit` is the command line."""

import sys

from remit.adapters.cli.main import main

sys.exit(main())
