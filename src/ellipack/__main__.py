"""``python -m ellipack`` runs the command ``ellipack``."""

from ellipack.cli import main

main()
