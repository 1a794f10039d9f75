"""How good a metric is, by kriging in it."""
