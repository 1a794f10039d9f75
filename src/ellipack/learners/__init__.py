"""Learners. Each module has a state and functions on it: `predict`, `learn`, `add_features` and archives."""
