"""Rules for ``not``, ``and`` and ``or``. Comparisons below them are of integers: floats have no total order."""

NOT = """
not (not x) -> x
not (x < y) -> y <= x
not (x <= y) -> y < x
not (x == y) -> x != y
not (x != y) -> x == y
not (x and y) -> (not x) or (not y)
not (x or y) -> (not x) and (not y)
"""

AND = """
x and x -> x
x and not x -> False
(not x) and x -> False
x == y and x != y -> False
x != y and x == y -> False
x <= y and y < x -> False
y < x and x <= y -> False
x < c1 and c2 < x -> False if c2 + 1 >= c1
c2 < x and x < c1 -> False if c2 + 1 >= c1
x <= c1 and c2 <= x -> False if c2 > c1
c2 <= x and x <= c1 -> False if c2 > c1
x and (y and z) -> (x and y) and z
"""

OR = """
x or x -> x
x or not x -> True
(not x) or x -> True
x == y or x != y -> True
x != y or x == y -> True
x <= y or y < x -> True
y < x or x <= y -> True
x < y or y < x -> x != y
x < c1 or c2 < x -> True if c2 < c1
c2 < x or x < c1 -> True if c2 < c1
x <= c1 or c2 <= x -> True if c2 <= c1 + 1
c2 <= x or x <= c1 -> True if c2 <= c1 + 1
x < y or x == y -> x <= y
x < y or y == x -> x <= y
x == y or x < y -> x <= y
y == x or x < y -> x <= y
x or (y or z) -> (x or y) or z
"""
