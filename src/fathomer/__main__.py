"""Run ``python -m fathomer``, which is the same as the command ``fathomer``."""

from fathomer.cli import main

main()
