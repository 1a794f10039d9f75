"""The practical learner a row at a time, where a call must cost little more than its round."""
