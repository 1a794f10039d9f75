"""Measured importance of columns: against known shares, against permutation on real tables, and its cost."""
