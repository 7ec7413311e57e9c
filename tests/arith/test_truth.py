"""``Analyzer.truth``, and what a user of the analyzer says about leaves."""

from pypto.arith import Analyzer
from pypto.arith.leaves import Leaves
from pypto.ir import expr as x
from pypto.ir.dtype import DataType
from pypto.ir.type import ScalarType

INDEX, INT32, BOOL = DataType.INDEX, DataType.INT32, DataType.BOOL


def var(name, dtype=INDEX):
    return x.Var(name, ScalarType(dtype))


def const(value, dtype=INDEX):
    return x.ConstInt(value, dtype)


def lt(a, b):
    return x.Lt(a, b, BOOL)


def le(a, b):
    return x.Le(a, b, BOOL)


def test_truth_of_constants_and_ranges():
    analyzer = Analyzer()
    n = var("n")
    assert analyzer.truth(x.ConstBool(True)) is True and analyzer.truth(x.ConstBool(False)) is False
    assert analyzer.truth(le(const(0), n)) is True and analyzer.truth(lt(n, const(0))) is False
    assert analyzer.truth(lt(n, const(4))) is None
    assert analyzer.truth(lt(n, x.Add(n, const(1), INDEX))) is True


def test_truth_by_facts():
    analyzer = Analyzer()
    a, b, c = var("a"), var("b"), var("c")
    with analyzer.constraint_context(x.And(lt(a, b), lt(b, c), BOOL)):
        assert analyzer.truth(lt(a, c)) is True and analyzer.truth(le(c, a)) is False
        assert analyzer.truth(le(x.Add(a, const(2), INDEX), c)) is True
        assert analyzer.truth(x.Eq(a, c, BOOL)) is False and analyzer.truth(x.Ne(a, c, BOOL)) is True
        assert analyzer.truth(lt(const(0), x.Sub(c, a, INDEX))) is True  # as a difference
        assert analyzer.truth(lt(const(2), x.Sub(c, a, INDEX))) is None
    assert analyzer.truth(lt(a, c)) is None


def test_truth_of_connected_conditions():
    analyzer = Analyzer()
    n, m = var("n"), var("m")
    true, unknown, false = le(const(0), n), lt(n, m), lt(n, const(0))
    assert analyzer.truth(x.And(true, unknown, BOOL)) is None
    assert analyzer.truth(x.And(false, unknown, BOOL)) is False
    assert analyzer.truth(x.Or(true, unknown, BOOL)) is True
    assert analyzer.truth(x.Not(false, BOOL)) is True


def test_nothing_is_true_under_contradictory_constraints():
    analyzer = Analyzer()
    n = var("n")
    with analyzer.constraint_context(lt(n, const(3))), analyzer.constraint_context(lt(const(5), n)):
        assert analyzer.truth(lt(n, const(9))) is None
    assert analyzer.truth(le(const(0), n)) is True


def test_symbolic_intervals_learn_constraints_when_they_are_asked():
    analyzer = Analyzer()
    i, n = var("i"), var("n")
    with analyzer.constraint_context(lt(i, n)):
        with analyzer.constraint_context(lt(n, const(9))):
            assert analyzer.int_set(i).max_value is not None
        assert analyzer.int_set(n).max_value is None
    assert analyzer.int_set(i).max_value is i


class Said(Leaves):
    def __init__(self, ranges=(), residues=(), opaque=(), other=()):
        self.ranges, self.residues = dict(ranges), dict(residues)
        self.opaque, self.other = tuple(opaque), dict(other)

    def is_opaque(self, e):
        return super().is_opaque(e) or type(e) in self.opaque

    def rewrite(self, e):
        return self.other.get(e, e)

    def range(self, e):
        return self.ranges.get(e)

    def residue(self, e):
        return self.residues.get(e)


def test_ranges_and_residues_of_leaves():
    n, m = var("n"), var("m")
    analyzer = Analyzer(Said({n: (-5, 3)}, {m: (8, 0)}))
    assert analyzer.range_of(x.Add(n, const(1), INDEX)) == (-4, 4)
    assert analyzer.truth(le(const(0), n)) is None
    assert analyzer.simplify(x.FloorMod(m, const(4), INDEX)).value == 0
    with analyzer.constraint_context(le(const(0), n)):
        assert analyzer.range_of(n) == (0, 3)
    assert analyzer.range_of(n) == (-5, 3)


def test_leaves_are_replaced_and_opaque_operators_not_looked_into():
    n, m, stand_in = var("n", INT32), var("m", INT32), var("s", INT32)
    product = x.Mul(n, m, INT32)
    analyzer = Analyzer(Said(opaque=(x.Mul,), other={product: stand_in}))
    assert analyzer.simplify(x.Add(product, const(0, INT32), INT32)) is stand_in
    assert analyzer.simplify(lt(product, x.Add(product, const(1, INT32), INT32))).value is True


def test_constants_around_a_difference_are_folded():
    """They were exchanged back and forth."""
    analyzer = Analyzer()
    m = var("m")
    for e in (
        x.Add(x.Sub(const(7), m, INDEX), const(-3), INDEX),
        x.Add(const(-3), x.Sub(const(7), m, INDEX), INDEX),
        x.Sub(x.Sub(const(7), m, INDEX), const(3), INDEX),
    ):
        result = analyzer.simplify(e)
        assert type(result) is x.Sub and result.left.value == 4 and result.right is m
        assert analyzer.simplify(result) is result
