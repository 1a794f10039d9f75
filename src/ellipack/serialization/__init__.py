"""Saved models: facts and arrays in one safetensors file, without executable content."""

from ellipack.serialization.archive import Archive, Json
from ellipack.serialization.file import pack, read, unpack, verify, write

__all__ = ["Archive", "Json", "pack", "read", "unpack", "verify", "write"]
