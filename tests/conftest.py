"""How hypothesis runs here: the same examples every time, and no deadline, since a kernel's first call compiles."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ellipack", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ellipack")
