"""All kernels compiled ahead of use, on all cores: what the first call of each would wait for.

What is compiled is kept on disk, by numba's rules: beside the package; where a user's cached files are, for users who
can't write there; or wherever ``NUMBA_CACHE_DIR`` says. So whoever will need the kernels should be the one who has them
compiled. A new version of the package or of numba, and another processor, have them compiled anew. What is there
already is only loaded.
"""
