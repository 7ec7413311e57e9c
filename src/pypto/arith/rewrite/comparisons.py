"""Rules for comparisons of integers. ``a > b`` and ``a >= b`` are turned into ``b < a`` and ``b <= a`` before."""

EQ = """
x == x -> True
x + y == x + z -> y == z
y + x == x + z -> y == z
x + y == z + x -> y == z
y + x == z + x -> y == z
x - c1 == c2 -> x == c1 + c2
x + c1 == c2 -> x == c2 - c1
c1 - x == c2 -> x == c1 - c2
c1 == x -> x == c1
"""

NE = """
x != x -> False
x + y != x + z -> y != z
y + x != x + z -> y != z
x + y != z + x -> y != z
y + x != z + x -> y != z
x - c1 != c2 -> x != c1 + c2
x + c1 != c2 -> x != c2 - c1
c1 != x -> x != c1
"""

LT = """
x < x -> False
x + y < x + z -> y < z
y + x < x + z -> y < z
x + y < z + x -> y < z
y + x < z + x -> y < z
y - x < z - x -> y < z
x - y < x - z -> z < y
x < x + z -> 0 < z
x < z + x -> 0 < z
x < x - z -> z < 0
x + c1 < c2 -> x < c2 - c1
x - c1 < c2 -> x < c2 + c1
c1 - x < c2 -> c1 - c2 < x
c1 < x + c2 -> c1 - c2 < x
c1 < x - c2 -> c1 + c2 < x
x * c1 < y * c1 -> x < y if c1 > 0
x * c1 < y * c1 -> y < x if c1 < 0
x // c1 < c2 -> x < c1 * c2 if c1 > 0
c1 < x // c2 -> (c1 + 1) * c2 - 1 < x if c2 > 0
(x // c1) * c1 < x -> 0 < x % c1 if c1 > 0
(x // c1) * c1 < x + y -> 0 < x % c1 + y if c1 > 0
(x // c1) * c1 < x - y -> y < x % c1 if c1 > 0
min(x, y) < z -> x < z or y < z
max(x, y) < z -> x < z and y < z
z < min(x, y) -> z < x and z < y
z < max(x, y) -> z < x or z < y
"""

LE = """
x <= x -> True
x + y <= x + z -> y <= z
y + x <= x + z -> y <= z
x + y <= z + x -> y <= z
y + x <= z + x -> y <= z
y - x <= z - x -> y <= z
x - y <= x - z -> z <= y
x + c1 <= c2 -> x <= c2 - c1
x - c1 <= c2 -> x <= c2 + c1
c1 - x <= c2 -> c1 - c2 <= x
c1 <= x + c2 -> c1 - c2 <= x
c1 <= x - c2 -> c1 + c2 <= x
x * c1 <= y * c1 -> x <= y if c1 > 0
x * c1 <= y * c1 -> y <= x if c1 < 0
"""
