"""How the practical learner forgets."""
