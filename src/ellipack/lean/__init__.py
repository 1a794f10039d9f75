"""Numba with less to do: what compiles kernels of flat arrays and plain numbers, and no more.

What a first call waits for is compiling. Numba compiles all of Python that it knows, for anyone, and pays for that
with each function: it looks for closures, comprehensions and objects of every kind; it writes down each use of an
array as if that could be any array, counts references to it, and leaves it to LLVM to find out what of it matters.
Kernels have arrays of numbers in C order, whole-number indices, ranges that count up by one, and calls of each other.
For these, and for these alone, there are shorter ways here (`lowering`, with `arrays`, `loops`, `plain` and `calls`),
a memory for what numba finds out about types (`inference`), libraries that are optimised once (`libraries`), machine
code that kernels share (`sharing`) and a shorter way through numba (`passes`, `compilers`). Whatever else a kernel does
goes numba's own way, but for what is refused (`refusals`).

Results are the same, bit for bit. This leans on numba's inside: a version of numba is allowed when the oldest and the
newest that are were tried.
"""
