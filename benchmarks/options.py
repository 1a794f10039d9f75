"""What the benchmarks' command lines have in common."""

import argparse


def check_counts(parser: argparse.ArgumentParser, options: argparse.Namespace, *names: str) -> None:
    """End with a usage error if one of these options was given and is not at least 1."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be >= 1, got {value}")
