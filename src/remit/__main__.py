"""`python -m remit` is the command line."""

import sys

from remit.adapters.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
