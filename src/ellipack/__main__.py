"""``python -m ellipack`` is the command `ellipack`."""

from ellipack.cli import main

main()
