"""Merging of what several learners learned from consecutive rows, each starting from the same state.

A learner that starts from the state *base* and learns some rows ends in a state that differs from it by what it
learned. `merge_...` functions take the base and what was learned from consecutive runs of rows, in the order of the
rows, and return what would have been learned from all of them. A single entry is returned as it is, bit for bit. They
are associative up to rounding: merging (a, b) and c is merging a and (b, c).
"""
