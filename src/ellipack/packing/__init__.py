"""The centres, and which of them are nearest, in coordinates where distance is Euclidean."""
