"""How the practical learner learns."""
