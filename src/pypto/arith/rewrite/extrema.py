"""Rules for minima; those for maxima are their duals."""

# Each line stands for min and, by duality, for max.
MIN = """
min(x, x) -> x
min(min(x, c1), c2) -> min(x, min(c1, c2))
min(c1, min(x, c2)) -> min(x, min(c1, c2))
min(y - x, z - x) -> min(y, z) - x
min(x - y, x - z) -> x - max(y, z)
min(x + y, x + z) -> x + min(y, z)
min(y + x, x + z) -> x + min(y, z)
min(x + y, z + x) -> x + min(y, z)
min(y + x, z + x) -> x + min(y, z)
min(x + c1, x + c2) -> x + min(c1, c2)
min(x + c1, x) -> x + c1 if c1 < 0 else x
min(x, x + c1) -> x + c1 if c1 < 0 else x
min(c1 - x, c2 - x) -> min(c1, c2) - x
min(min(x, y), x) -> min(x, y)
min(min(x, y), y) -> min(x, y)
min(x, min(x, y)) -> min(x, y)
min(y, min(x, y)) -> min(x, y)
min(max(x, y), x) -> x
min(max(x, y), y) -> y
min(x, max(x, y)) -> x
min(y, max(x, y)) -> y
min(max(x, y), max(x, z)) -> max(min(y, z), x)
min(max(y, x), max(x, z)) -> max(min(y, z), x)
min(max(x, y), max(z, x)) -> max(min(y, z), x)
min(max(y, x), max(z, x)) -> max(min(y, z), x)
min(min(x, y), min(x, z)) -> min(min(y, z), x)
min(min(y, x), min(x, z)) -> min(min(y, z), x)
min(min(x, y), min(z, x)) -> min(min(y, z), x)
min(min(y, x), min(z, x)) -> min(min(y, z), x)
min(x // c1, y // c1) -> min(x, y) // c1 if sign(c1) == 1
min(x // c1, y // c1) -> max(x, y) // c1 if sign(c1) == -1
min(x * c1, y * c1) -> min(x, y) * c1 if sign(c1) == 1
min(x * c1, y * c1) -> max(x, y) * c1 if sign(c1) == -1
min(x, y) -> x if at_most(x, y)
min(x, y) -> y if at_most(y, x)
min(c1, x) -> min(x, c1)
min(min(x, c1), y) -> min(min(x, y), c1)
"""
