"""All kernels compiled ahead of use, on all cores: what the first call of each would wait for.

What is compiled is kept on disk, by numba's rules: beside the package; where users' cached files are, if nothing can
be written there; or wherever ``NUMBA_CACHE_DIR`` says. A new version of the package or of numba, and another processor,
have kernels compiled anew. What is there already is only loaded.
"""
