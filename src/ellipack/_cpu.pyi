"""Capabilities of this processor."""



def supports_x86_64_v3() -> bool:
    """Whether this processor runs code built for x86-64-v3 (AVX2)."""

def supports_x86_64_v4() -> bool:
    """Whether this processor runs code built for x86-64-v4 (AVX-512)."""
