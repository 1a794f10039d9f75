"""Progressive evaluation: runs over a table, their scores and prediction files. Requires the extra `cli`."""
