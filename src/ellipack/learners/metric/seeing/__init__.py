"""How the practical learner sees rows."""
