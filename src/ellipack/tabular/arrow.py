"""Import of pyarrow. If pyarrow is not installed, the error says that the extra `cli` installs it."""

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv, json, parquet
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"reading tables needs pyarrow ({missing}): pip install 'ellipack[cli]'", name=missing.name
    ) from missing

__all__ = ["csv", "json", "pa", "parquet", "pc"]
