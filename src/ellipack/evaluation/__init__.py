"""Progressive evaluation: a run over a table, its scores, and the file of its predictions. Needs the extra `cli`."""
