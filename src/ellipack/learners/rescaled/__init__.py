"""Any features and labels for the paper's learners: boxes that grow, and what was learned seen in the new units."""
