"""Where rounds come from."""

from ellipack.stream.synthetic import LowRankStream

__all__ = ["LowRankStream"]
