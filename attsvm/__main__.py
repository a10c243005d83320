"""``python -m attsvm`` is the ``attsvm`` command."""

import sys

from attsvm.cli import main

if __name__ == "__main__":
    sys.exit(main())
