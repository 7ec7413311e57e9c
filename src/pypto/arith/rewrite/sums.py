"""Rules for sums, differences, products and negations."""

ADD = """
(x + c1) + c2 -> x + (c1 + c2)
(c1 + x) + c2 -> x + (c1 + c2)
(x - c1) + c2 -> x + (c2 - c1)
(c1 - x) + c2 -> (c1 + c2) - x
c1 + (c2 - x) -> (c1 + c2) - x
(x - y) + y -> x
x + (y - x) -> y
(x - y) + (y - z) -> x - z
(x - y) + (z - x) -> z - y
x + x -> x * 2
x * y + x -> (y + 1) * x
x + x * y -> (y + 1) * x
x * y + x * z -> (y + z) * x
y * x + x * z -> (y + z) * x
x * y + z * x -> (y + z) * x
y * x + z * x -> (y + z) * x
(x // y) * y + x % y -> x
y * (x // y) + x % y -> x
x % y + (x // y) * y -> x
x % y + y * (x // y) -> x
* min(x, y - z) + z -> min(x + z, y)
* z + min(x, y - z) -> min(x + z, y)
* min(x - z, y) + z -> min(x, y + z)
max(x, y) + min(x, y) -> x + y
min(x, y) + max(x, y) -> x + y
max(x, y) + min(y, x) -> x + y
min(x, y) + max(y, x) -> x + y
c1 + x -> x + c1 if symbolic(x)
x + (c1 - y) -> (x - y) + c1
(c1 - y) + x -> (x - y) + c1
(x + c1) + y -> (x + y) + c1
"""

SUB = """
x - x -> 0
(x + y) - y -> x
(y + x) - y -> x
x - (x + y) -> -y
x - (y + x) -> -y
(x + c1) - c2 -> x + (c1 - c2)
(c1 + x) - c2 -> x + (c1 - c2)
(x - c1) - c2 -> x - (c1 + c2)
(c1 - x) - c2 -> (c1 - c2) - x
c1 - (c2 - x) -> x + (c1 - c2)
c1 - (x + c2) -> (c1 - c2) - x
c1 - (c2 + x) -> (c1 - c2) - x
(c1 - x) - (c2 - y) -> (y - x) + (c1 - c2)
(x - y) - (x - z) -> z - y
(x + y) - (x + z) -> y - z
(y + x) - (x + z) -> y - z
(x + y) - (z + x) -> y - z
(y + x) - (z + x) -> y - z
x * y - x -> (y - 1) * x
x - x * y -> (1 - y) * x
x * y - x * z -> (y - z) * x
y * x - x * z -> (y - z) * x
x * y - z * x -> (y - z) * x
y * x - z * x -> (y - z) * x
x - (x // c1) * c1 -> x % c1 if c1 != 0
x - c1 * (x // c1) -> x % c1 if c1 != 0
(x // c1) * c1 - x -> 0 - x % c1 if c1 != 0
x - ((x + y) // c1) * c1 -> (x + y) % c1 - y if c1 != 0
((x + y) // c1) * c1 - x -> y - (x + y) % c1 if c1 != 0
x - ((x - y) // c1) * c1 -> (x - y) % c1 + y if c1 != 0
((x - y) // c1) * c1 - x -> 0 - (x - y) % c1 - y if c1 != 0
* min(x, y) - x -> min(0, y - x)
* min(x, y) - y -> min(x - y, 0)
* x - min(x, y) -> max(0, x - y)
* y - min(x, y) -> max(y - x, 0)
* min(x + y, z) - x -> min(y, z - x)
* min(y + x, z) - x -> min(y, z - x)
* min(z, x + y) - x -> min(z - x, y)
* min(z, y + x) - x -> min(z - x, y)
* x - min(x + y, z) -> max(0 - y, x - z)
* x - min(y + x, z) -> max(0 - y, x - z)
* x - min(z, x + y) -> max(x - z, 0 - y)
* x - min(z, y + x) -> max(x - z, 0 - y)
* min(x, y) - min(y, x) -> 0
x - (y + c1) -> (x - y) + (0 - c1)
(x + c1) - y -> (x - y) + c1
x - (y - z) -> (x + z) - y
"""

MUL = """
(x * c1) * c2 -> x * (c1 * c2)
(c1 * x) * c2 -> x * (c1 * c2)
min(x, y) * max(x, y) -> x * y
max(x, y) * min(x, y) -> x * y
(x // c1) * c1 -> x if multiple(x, c1)
c1 * x -> x * c1 if symbolic(x)
x * (c1 * y) -> (x * y) * c1
(x + c1) * c2 -> x * c2 + c1 * c2
(x - y) * c1 -> (y - x) * (-c1) if c1 < 0
"""

NEG = """
-(-x) -> x
-(x - y) -> y - x
"""
