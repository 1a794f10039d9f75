"""What is said when a package is not installed."""


def in_words(missing: ModuleNotFoundError) -> str:
    """Return which package the command line lacks, and how to get it; a module of our own that is not there raises."""
    package = (missing.name or "a package").partition(".")[0]
    if package == "ellipack":
        raise missing
    return f"the command line needs {package}: pip install 'ellipack[cli]'"
