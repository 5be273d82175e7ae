"""Let ``python -m fathomer`` do what the ``fathomer`` command does."""

from fathomer.cli import main

main()
