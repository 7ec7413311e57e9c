"""Outlining of a program, function by function."""

from __future__ import annotations

from ...analysis.callees import Callees
from ...ir.node import FrozenDict
from ...ir.program import Function, Program
from ...ir.tree import definitions
from ...verify.inventory import inventory
from ..base import Pass
from ..naming import NameSupply
from .names import FunctionNames
from .policy import Policy
from .returns import hoist_returns
from .rewrite import Rewriter
from .scan import Scan


class OutlinePass(Pass):
    """A pass that turns scopes into functions, as its policy says."""

    policy: Policy

    def run(self, program: Program) -> Program:
        functions = list(program.functions.values())
        callees = Callees(functions)
        names = FunctionNames(function.name for function in functions)
        result: list[Function] = []
        for function in functions:
            if function.func_type in self.policy.visits and inventory(function).has(*self.policy.scopes):
                result += self._outline(function, callees, names)
            else:
                result.append(function)
        return program.with_functions(result)

    def _outline(self, function: Function, callees: Callees, names: FunctionNames) -> list[Function]:
        """The functions of the scopes, then the function around them."""
        policy = self.policy
        function = hoist_returns(function, policy)
        policy.check_function(function)
        defined = definitions(function)
        scan = Scan(function, policy, callees, defined)
        names.begin()
        rewriter = Rewriter(policy, scan, function.name, names, NameSupply(function, defined))
        body = rewriter.visit_stmt(function.body)
        around = function if body is function.body else function.replace(body=body)
        made = rewriter.made
        inherited = {key: function.attrs[key] for key in policy.inherited_attrs if key in function.attrs}
        if inherited:
            made = [each.replace(attrs=FrozenDict({**inherited, **each.attrs})) for each in made]
        callees.add(made)
        return [*made, policy.finish(around, callees)]


__all__ = ["OutlinePass"]
