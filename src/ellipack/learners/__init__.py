"""The learners: a state, and functions that move it on."""
