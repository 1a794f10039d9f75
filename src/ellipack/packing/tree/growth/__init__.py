"""How a tree is planted, takes in points and stays balanced."""
