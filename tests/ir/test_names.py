"""The scheme of generated variable names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.ir.names import ROLES, VarName, base_name, build_name, fresh_name_like, legacy_base_name

EXAMPLES = [
    ("x__ssa_v0", VarName("x", None, "ssa", 0)),
    ("acc__iter_v1", VarName("acc", None, "iter", 1)),
    ("acc__rv_v2", VarName("acc", None, "rv", 2)),
    ("i__idx_v0", VarName("i", None, "idx", 0)),
    ("q__tile", VarName("q", None, "tile", None)),
    ("m__l1_rv_v3", VarName("m", "l1", "rv", 3)),
    ("buf__cg", VarName("buf", "cg", None, None)),
    ("w__a_b__c", VarName("w", "a_b__c", None, None)),
    ("p__v12", VarName("p", None, None, 12)),
    ("p__l0_rm_v2", VarName("p", "l0_rm", None, 2)),
    ("my_name__a3_tile_out", VarName("my_name", "a3_tile", "out", None)),
    ("plain", VarName("plain")),
    ("x_iter_2", VarName("x_iter_2")),
]


@pytest.mark.parametrize(("text", "parsed"), EXAMPLES)
def test_parse_and_build(text, parsed):
    assert VarName.parse(text) == parsed
    assert str(parsed) == text
    assert base_name(text) == parsed.base


def test_only_the_ending_tokens_count():
    assert VarName.parse("x__v1_tile") == VarName("x", "v1", "tile", None)
    assert VarName.parse("x__tile_l1") == VarName("x", "tile_l1", None, None)
    assert VarName.parse("x__v") == VarName("x", "v", None, None)
    assert VarName.parse("x__v1a") == VarName("x", "v1a", None, None)


def test_the_delimiter_is_reserved():
    with pytest.raises(ValueError, match="reserved delimiter"):
        build_name("a__b", version=1)
    with pytest.raises(ValueError, match="role"):
        build_name("a", role="color")
    with pytest.raises(ValueError, match="negative"):
        build_name("a", version=-1)


def test_derived_names():
    name = VarName.parse("m__l1_rv_v3")
    assert str(name.with_qualifier("cg")) == "m__cg_l1_rv_v3"
    assert str(VarName("m").with_qualifier("l2")) == "m__l2"
    assert str(name.with_role("tmp")) == "m__l1_tmp_v3"
    assert str(name.with_version(0)) == "m__l1_rv_v0"


def test_fresh_name_like():
    assert fresh_name_like("x__ssa_v0", set()) == "x__ssa_v1"
    assert fresh_name_like("x__ssa_v0", {"x__ssa_v1", "x__ssa_v2"}) == "x__ssa_v3"
    assert fresh_name_like("x", set()) == "x__ssa_v0"
    assert fresh_name_like("x", {"x__ssa_v0"}) == "x__ssa_v1"
    assert fresh_name_like("m__l1_rv_v3", set()) == "m__l1_rv_v4"
    assert fresh_name_like("q__tile", set()) == "q__tile_v0"


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("x_iter_2", "x"),
        ("x_outer_l0_rv", "x"),
        ("acc_v3", "acc"),
        ("out_store_ret", "out"),
        ("x_tile_tmp_ssa_0", "x"),
        ("sum_l2_inner_rem_phi_idx", "sum"),
        ("plain", "plain"),
        ("my_value", "my_value"),
        ("_iter", "_iter"),
        ("a_1b", "a_1b"),
    ],
)
def test_legacy_base_name(name, base):
    assert legacy_base_name(name) == base


IDENTIFIER = st.from_regex(r"[a-z]([a-z0-9]|_[a-z0-9]){0,6}", fullmatch=True)
QUALIFIER = st.from_regex(r"(l[0-9]|cg|rm|a[0-9])(_(l[0-9]|cg|rm|a[0-9])){0,2}", fullmatch=True)


@given(
    IDENTIFIER,
    st.none() | QUALIFIER,
    st.none() | st.sampled_from(sorted(ROLES)),
    st.none() | st.integers(0, 10**6),
)
def test_round_trip(base, qualifier, role, version):
    name = VarName(base, qualifier, role, version)
    assert VarName.parse(str(name)) == name


@given(IDENTIFIER, st.sets(st.integers(0, 8)))
def test_a_fresh_name_is_fresh_and_alike(base, versions):
    used = {build_name(base, None, "ssa", version) for version in versions}
    fresh = fresh_name_like(build_name(base, None, "ssa", 0), used)
    assert fresh not in used
    assert VarName.parse(fresh)[:3] == (base, None, "ssa")
