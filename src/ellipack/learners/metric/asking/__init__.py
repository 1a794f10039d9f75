"""How the practical learner asks its local experts."""
