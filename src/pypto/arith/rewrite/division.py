"""Rules for floor division and floor modulo."""

FLOOR_DIV = """
(x * c1) // c2 -> x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
(c1 * x) // c2 -> x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
(x + c1) // c2 -> x // c2 + c1 // c2 if c2 > 0 and c1 % c2 == 0
(c1 + x) // c2 -> x // c2 + c1 // c2 if c2 > 0 and c1 % c2 == 0
(x * c1 + y) // c2 -> x * (c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
(c1 * x + y) // c2 -> x * (c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
(y + x * c1) // c2 -> y // c2 + x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
(y + c1 * x) // c2 -> y // c2 + x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
* min(x * c1, y) // c2 -> min(x * (c1 // c2), y // c2) if sign(c2) == 1 and c1 % c2 == 0
* min(y, x * c1) // c2 -> min(y // c2, x * (c1 // c2)) if sign(c2) == 1 and c1 % c2 == 0
(x * c1) // c2 -> x // (c2 // c1) if c1 > 0 and c2 % c1 == 0 and c2 // c1 > 0
(x // c1) // c2 -> x // (c1 * c2) if c1 > 0 and c2 > 0
(x // c1 + c2) // c3 -> (x + c1 * c2) // (c1 * c3) if c1 > 0 and c3 > 0
(x - x % c1) // c1 -> x // c1 if c1 != 0
x // x -> 1 if nonzero(x)
(x * c1) // x -> c1 if nonzero(x)
(c1 * x) // x -> c1 if nonzero(x)
(x * y) // y -> x if nonzero(y)
(y * x) // y -> x if nonzero(y)
(x * z + y) // z -> x + y // z if positive(z)
(z * x + y) // z -> x + y // z if positive(z)
(y + x * z) // z -> y // z + x if positive(z)
(y + z * x) // z -> y // z + x if positive(z)
x // c1 -> 0 if within(x, c1)
(x + y) // c1 -> x // c1 + y // c1 if multiple(x, c1)
(x + y) // c1 -> x // c1 + y // c1 if multiple(y, c1)
"""

FLOOR_MOD = """
(x * c1) % c2 -> 0 if c2 > 0 and c1 % c2 == 0
(c1 * x) % c2 -> 0 if c2 > 0 and c1 % c2 == 0
(x + c1) % c2 -> x % c2 if c2 > 0 and c1 % c2 == 0
(c1 + x) % c2 -> x % c2 if c2 > 0 and c1 % c2 == 0
(x * c1 + y) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(c1 * x + y) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(y + x * c1) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(y + c1 * x) % c2 -> y % c2 if c2 > 0 and c1 % c2 == 0
(x * c1) % c2 -> (x * (c1 % c2)) % c2 if c2 != 0 and c1 % c2 != c1
(x + y * c1) % c2 -> (x + y * (c1 % c2)) % c2 if c2 > 0 and c1 % c2 != c1
(x + c1) % c2 -> (x + c1 % c2) % c2 if c2 > 0 and c1 % c2 != c1
(x * y) % y -> 0 if nonzero(y)
(y * x) % y -> 0 if nonzero(y)
(x * c1) % (x * c2) -> x * (c1 % c2) if nonzero(x) and c2 != 0
x % c1 -> x if within(x, c1)
x % c1 -> 0 if multiple(x, c1)
(x + y) % c1 -> y % c1 if multiple(x, c1)
(x + y) % c1 -> x % c1 if multiple(y, c1)
"""
