"""Host code: launches, kernel scopes, tasks with explicit dependencies, runtime scopes, helpers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from .body import HOST, SCOPE, Budget
from .choices import Choices
from .env import F32, FLOAT, I32, INDEX, ROWS, TALL, TASK, Root, Ty, Value
from .kernels import Callee, Param
from .statements import Statements

AT = "pl.at(level=pl.Level.CORE_GROUP"
INNER_LEVELS = {
    "": ("CHIP", "HOST", "CHIP", "HOST", "CHIP_DIE"),
    "HOST": ("CHIP", "CHIP", "CHIP_DIE"),
    "CHIP": ("CHIP_DIE",),
    "CHIP_DIE": (),
}


class Host(Statements):
    """The body of an orchestration function. ``chain``: in a manual scope, the id of the last task, which every task
    waits for."""

    def __init__(self, choices: Choices, callees: list[Callee], budget: Budget, auto_scope: bool = True) -> None:
        super().__init__(choices, HOST, budget)
        self.callees = callees
        self.auto_scope = auto_scope
        self.scopes = True  # kernel scopes may stand here
        self.levelled = False  # scopes of other levels too
        self.level = ""  # the level of the innermost of them that is open
        self.manual = True  # manual scopes too: what is around them is known
        self.chain: str | None = None
        self.usable: Callable[[str], bool] = lambda _name: True

    def table(self) -> list[tuple[int, Callable[[], bool]]]:
        table = super().table()
        if self.role != HOST:
            return table
        deep = self.indent < 9 and self.budget.statements > 0
        kernels = self.may_launch()
        launches = kernels and any(not c.inline for c in self.callees)
        table += [
            (14 if launches else 0, self.launch),
            (7 if launches else 0, self.submit),
            (14 if self.scopes and kernels and deep else 0, self.kernel_scope),
            (4 if self.scopes and kernels and deep else 0, self.spmd_scope),
            (5 if launches and any(c.blocks for c in self.callees) else 0, self.spmd_launch),
            (5 if any(map(self.may_call, self.callees)) and self.chain is None else 0, self.helper_call),
            (4, self.create),
            (2, self.view),
            (3 if self.manual and self.chain is None and deep else 0, self.manual_scope),
            (4 if self.chain is None and deep and not self.auto_scope else 0, self.runtime_scope),
            (3 if launches else 0, self.fan_out),
            (2 if self.may_nest() and deep else 0, self.hierarchy_scope),
            (2 if self.chain is None else 0, self.seed_task),
        ]
        return table

    # --- tensors of the host ------------------------------------------------------------------------------------------

    def create(self) -> bool:
        kind = self.g.weighted(((4, F32), (1, TALL), (1, I32)))
        name = self.target(kind)
        if any(name in loop.outer or name in loop.carries for loop in self.loops):  # the next iteration may read it
            name = self.fresh("t")
        self.put(f"{name} = pl.create_tensor({list(kind.shape)}, dtype=pl.{kind.dtype})")
        self.assign(name, self.made_here(kind, full=False))
        self.g.saw("tensor created in a loop" if self.loops else "tensor created")
        return True

    def view(self) -> bool:
        """A part of a tensor under a name of its own."""
        names = [n for n in self.operands(TALL) if self.usable(n) and self.may_hold(n)]
        if not names:
            return False
        source = self.g.pick(names)
        row = self.g.pick((0, 4, ROWS))
        text = (
            f"pl.slice({source}, {list(F32.shape)}, [{row}, 0])"
            if self.g.chance(60)
            else f"{source}[{row}:{row + ROWS}, :]"
        )
        value = Value(F32, self.env.live[source].roots)
        name = self.target(F32, (source,))
        self.put(f"{name} = {text}")
        self.assign(name, value)
        self.g.saw("view on the host")
        return True

    # --- launches -----------------------------------------------------------------------------------------------------

    def launch(self) -> bool:
        return self.launch_of(self.g.pick([c for c in self.callees if not c.inline]), False)

    def submit(self) -> bool:
        return self.launch_of(self.g.pick([c for c in self.callees if not c.inline]), True)

    def spmd_launch(self) -> bool:
        return self.launch_of(self.g.pick([c for c in self.callees if c.blocks]), False)

    def launch_of(self, callee: Callee, submit: bool, row: str | None = None) -> bool:
        """Call or submit a kernel: its results rebind what it wrote."""
        g, env = self.g, self.env
        submit = submit or self.chain is not None
        outputs = self.outputs(callee)
        if outputs is None:
            return False
        written = frozenset().union(*(env.live[n].roots for n in outputs.values() if n)) if outputs else frozenset()
        args = []
        nested = ["no launch"] if callee.blocks else []  # an spmd scope holds one launch and no inline function
        inlines, self.inlines = self.inlines, self.inlines and not callee.blocks
        for i, param in enumerate(callee.params):
            if i in outputs:
                name = outputs[i]
                args.append(name or f"pl.create_tensor({list(param.type.shape)}, dtype=pl.{param.type.dtype})")
                if name is None:
                    g.saw("nested call", "created in a call")
            elif row is not None and param.name == "row":
                args.append(row)
            else:
                text = self.argument(param, written, nested)
                if text is None:
                    self.inlines = inlines
                    return False
                args.append(text)
        self.inlines = inlines
        results = self.take_results(callee, outputs)
        call = f"self.{callee.name}({', '.join(args)})"
        if callee.blocks and (not submit or g.chance(50)) and self.chain is None:
            self.put_spmd(callee.blocks, f"{', '.join(results)} = {call}")
        elif submit:
            self.put_submit(callee, args, results)
        else:
            self.put(f"{', '.join(results)} = {call}")
            g.saw("kernel call")
        if self.loops:
            g.saw("launch in a loop")
        return True

    def put_spmd(self, blocks: int, launch: str) -> None:
        """One launch over several blocks, alone or as a cluster."""
        if self.g.chance(20):
            with self.block("with pl.cluster():"), self.block(f"with pl.spmd({blocks}):"):
                self.put(launch)
            self.g.saw("cluster")
            return
        task = self.target(TASK) if self.g.chance(30) else None
        deps = self.deps() if task else []
        shown = f", deps=[{', '.join(deps)}]" if deps else ""
        with self.block(f"with pl.spmd({blocks}{shown}){f' as {task}' if task else ''}:"):
            self.put(launch)
        if task:
            self.assign(task, Value(TASK))
        self.g.saw("spmd launch")

    def put_submit(self, callee: Callee, args: list[str], results: list[str]) -> None:
        g = self.g
        deps = self.deps()
        if self.chain is not None:
            deps = [self.chain, *[d for d in deps if d != self.chain]]
            task = self.chain
        else:
            task = self.target(TASK)
        if deps:
            args = [*args, f"deps=[{', '.join(deps)}]"]
            g.saw("submit with deps")
        shown = results[0] if len(results) == 1 else f"({', '.join(results)})"
        form = "pl.submit"
        if callee.blocks:
            form = "pl.spmd_submit"
            args = [*args, f"core_num={callee.blocks}"]
        self.put(f"{shown}, {task} = {form}(self.{callee.name}, {', '.join(args)})")
        self.assign(task, Value(TASK))
        g.saw("submit", *(["submit in a loop"] if self.loops else []), *(["spmd submit"] if callee.blocks else []))

    def deps(self) -> list[str]:
        """Some ids of tasks."""
        names = self.env.of(TASK) + self.env.of(Ty("tasks", "2")) + self.env.of(Ty("tasks", "3"))
        names = names[-4:]
        return [n for n in names if self.g.chance(50)]

    def outputs(self, callee: Callee) -> dict[int, str | None] | None:
        """A tensor for each parameter that the callee writes; None instead of a name: made in the call."""
        g, env = self.g, self.env
        found: dict[int, str | None] = {}
        taken: frozenset[Root] = frozenset()
        for i, param in enumerate(callee.params):
            if param.direction == "In":
                continue
            names = [
                n
                for n in env.of(param.type, full=param.direction == "InOut")
                if self.can_write(n) and self.usable(n) and taken.isdisjoint(env.live[n].roots)
            ]
            fresh = param.direction == "Out" and i in callee.whole and not callee.inline and not callee.blocks
            if fresh and (not names or g.chance(25)):
                found[i] = None
                continue
            if not names:
                return None
            found[i] = name = g.pick(names)
            taken |= env.live[name].roots
        return found

    def argument(self, param: Param, written: frozenset[Root], nested: list[str]) -> str | None:
        """Something to read: a name, a part of a tensor, the result of another launch."""
        g, env = self.g, self.env
        if param.type == INDEX:
            return self.below(param.limit) if param.limit is not None else self.integer(1)
        if param.type == FLOAT:
            return self.real()
        names = [n for n in self.operands(param.type) if self.usable(n) and written.isdisjoint(env.live[n].roots)]
        if param.type == F32 and self.chain is None and not nested and g.chance(12):
            inner = [
                c
                for c in self.callees
                if not c.inline
                and not c.blocks
                and len(c.results) == 1
                and c.whole
                and c.params[c.results[0]].type == F32
                and c.params[c.results[0]].direction == "Out"
            ]
            if inner:
                callee = g.pick(inner)
                nested.append(callee.name)
                args = [
                    f"pl.create_tensor({list(p.type.shape)}, dtype=pl.{p.type.dtype})"
                    if p.direction == "Out"
                    else self.argument(p, written, nested)
                    for p in callee.params
                ]
                if None not in args:
                    g.saw("nested call", "nested launch")
                    return f"self.{callee.name}({', '.join(map(str, args))})"
        if not names:
            return None
        name = g.pick(names)
        self.note_read(env.live[name])
        return name

    def take_results(self, callee: Callee, outputs: dict[int, str | None]) -> list[str]:
        """Names for the results; the tensors that were written are known by them from here on."""
        g, env = self.g, self.env
        found: list[str] = []
        values: list[Value] = []
        for i in callee.results:
            param, name = callee.params[i], outputs[i]
            if name is None:
                value = self.made_here(param.type)
                for root in value.roots:
                    root.touched = True
                result = self.target(param.type, tuple(found))
            else:
                value = replace(env.live[name], full=env.live[name].full or i in callee.whole)
                self.note_write(name)
                outer = name in self.pinned or any(name in loop.outer for loop in self.loops)
                result = name
                if not outer and g.chance(25):
                    result = self.target(param.type, tuple(found))
                    g.saw("result under another name")
            found.append(result)
            values.append(value)
        for name in outputs.values():
            if name is not None and name not in found:
                env.live.pop(name, None)
        for name, value in zip(found, values, strict=True):
            self.assign(name, value)
        return found

    # --- kernel scopes ------------------------------------------------------------------------------------------------

    def scope_head(self, form: str) -> tuple[str, str | None]:
        """``with`` line of a kernel scope, and the name of its task."""
        g = self.g
        parts = [form]
        if g.chance(30):
            parts.append(f'name_hint="{g.pick(("work", "step", "fill"))}"')
        deps = self.deps() if g.chance(40) else []
        task = None
        if self.chain is not None:
            task = self.chain
            deps = [self.chain, *[d for d in deps if d != self.chain]]
        elif g.chance(25) or (deps and form != AT):
            task = self.target(TASK)
        if deps and (task is not None or form == AT):
            parts.append(f"deps=[{', '.join(deps)}]")
            g.saw("scope with deps")
        if task is not None:
            g.saw("scope as a task")
        return f"with {', '.join(parts)}){f' as {task}' if task else ''}:", task

    def kernel_scope(self) -> bool:
        """``with pl.at(level=CORE_GROUP)``: a kernel written in place."""
        g, env = self.g, self.env
        if not self.can_store():
            return False
        head, task = self.scope_head(AT)
        before = dict(env.live)
        leaks = g.chance(20) and self.chain is None  # scalars that it computes are used outside
        start = len(self.lines)
        with self.block(head), Inside(self):
            scalars = [n for n, v in before.items() if not v.type.shaped]
            with self.keeping(*([n for n in scalars if env.live[n].type != TASK] if not leaks else [])):
                self.statements(0, 4)
                self.finish_stores(self.chain is not None)
        self.leave_scope(before, leaks)
        self.note_scope_reads(before, self.lines[start:])
        if task is not None:
            self.assign(task, Value(TASK))
        g.saw("kernel scope", *(["kernel scope in a loop"] if self.loops else []))
        if self.level:
            g.saw("kernel scope in a hierarchy scope")
        return True

    def can_store(self) -> bool:
        return any(self.usable(n) for n in self.targets())

    def store_to(self, name: str, row: str, depth: int = 2) -> None:
        super().store_to(name, row, depth)
        if self.level:
            self.g.saw("store in a hierarchy scope")

    def targets(self) -> list[str]:
        return [n for n in super().targets() if self.usable(n)]

    def readable(self, name: str) -> bool:
        return super().readable(name) and self.usable(name)

    def finish_stores(self, least: bool) -> None:
        """What a scope writes at its end: something, or nothing where its values are used outside."""
        if least or self.g.chance(85):
            self.store()

    def leave_scope(self, before: dict[str, Value], leaks: bool) -> None:
        """Tiles stay inside; scalars too, where nothing outside may depend on them."""
        env = self.env
        known = {root for value in before.values() for root in value.roots}
        for name, value in list(env.live.items()):
            new = before.get(name) is not value
            if value.type.kind == "tile":
                del env.live[name]
            elif new and not value.type.shaped and value.type != TASK:
                if not leaks:
                    del env.live[name]
                else:
                    self.g.saw("scalar computed by a scope")
            elif value.type.kind == "tensor" and (name not in before or before[name].roots != value.roots):
                self.g.saw("tensor computed by a scope")
                self.note_launched(name)
                if not known.isdisjoint(value.roots):  # may be an outer tensor, or a part of one
                    env.live[name] = replace(env.live[name], writable=False)

    def note_launched(self, name: str) -> None:
        """A launch may compute what this name stands for."""
        value = self.env.live[name]
        for root in value.roots:
            root.touched = root.touched or not root.fixed
        if any(root.fixed for root in value.roots):  # a part of an In parameter, or a copy of it
            self.env.live[name] = replace(value, roots=value.roots | {Root.earlier(len(self.loops))}, writable=False)

    def note_scope_reads(self, before: dict[str, Value], lines: list[str]) -> None:
        """The outer tensors that a scope reads: those that it mentions otherwise than as what it writes."""
        for name, value in before.items():
            if value.type.kind != "tensor":
                continue
            word = re.compile(rf"\b{name}\b")
            written = re.compile(rf"^ *{name}(\[[^=]*\])? = |, {name}\)$|pl\.assemble\({name},")
            if any(word.search(written.sub("", line)) for line in lines):
                self.note_read(value)

    def spmd_scope(self) -> bool:
        """``for block in pl.spmd(n)``: the blocks write different rows of one tensor."""
        g, env = self.g, self.env
        names = [n for n in env.of(TALL, full=False) if self.can_write(n) and self.usable(n)]
        if not names or self.chain is not None:
            return False
        name = g.pick(names)
        before = dict(env.live)
        block = self.fresh("block")
        hint = f', name_hint="{g.pick(("work", "rows"))}"' if g.chance(30) else ""
        start = len(self.lines)
        with self.block(f"for {block} in pl.spmd(2{hint}):"), Inside(self):
            self.assign(block, Value(INDEX, limit=2))
            hidden = {name, *env.sharing(env.live[name].roots)} - self.hidden
            self.hidden |= hidden  # what one block writes, no other may read
            stores, self.stores = self.stores, False
            with self.keeping(*before, block):
                self.statements(0, 3)
            self.stores = stores
            env.live = {n: v for n, v in env.live.items() if n not in hidden or n == name}
            self.store_to(name, f"{block} * {ROWS}")
            self.hidden -= hidden
        written = env.live[name]
        env.live = {n: v for n, v in env.live.items() if n in before}
        env.live[name] = replace(written, full=True)
        self.note_scope_reads(before, self.lines[start:])
        g.saw("spmd scope")
        return True

    # --- tasks with explicit dependencies -----------------------------------------------------------------------------

    def seed_task(self) -> bool:
        """No task yet."""
        name = self.target(TASK)
        self.put(f"{name} = None")
        self.assign(name, Value(TASK))
        self.g.saw("seed of a task id")
        return True

    def fan_out(self) -> bool:
        """Tasks of one phase in an array; what follows may wait for all of them."""
        g, env = self.g, self.env
        bands = [
            c for c in self.callees if any(p.name == "row" for p in c.params) and (c.disjoint or self.chain is None)
        ]
        if not bands or not self.affordable(2):
            return False
        callee = g.pick(bands)
        out = next(p for p in callee.params if p.direction != "In")
        names = [n for n in env.of(TALL, full=out.direction == "InOut") if self.can_write(n) and self.usable(n)]
        if not names:
            return False
        name = g.pick(names)
        ids = self.fresh("ids")
        task = self.fresh("tid")
        index = self.index_name()
        self.put(f"{ids} = pl.array.create(2, pl.TASK_ID)")
        written = env.live[name].roots
        args: list[str] = []
        for param in callee.params:
            if param.name == "row":
                args.append(f"{index} * {ROWS}")
            elif param.direction != "In":
                args.append(name)
            else:
                text = self.argument(param, written, ["no launch"])
                if text is None:
                    return True
                args.append(text)
        wait = f", deps=[{self.chain}]" if self.chain is not None else ""
        with self.block(f"for {index} in pl.{g.pick(('range', 'parallel'))}(2):"):
            self.put(f"{name}, {task} = pl.submit(self.{callee.name}, {', '.join(args)}{wait})")
            self.put(f"{ids}[{index}] = {task}")
        self.note_write(name)
        env.bound[index] = INDEX
        env.bound[task] = TASK
        env.bind(ids, Value(Ty("tasks", "2")))
        env.live[name] = replace(env.live[name], full=True)
        if self.chain is not None:
            self.put(f"{self.chain} = pl.system.task_dummy(deps=[{ids}])")
        g.saw("array of task ids")
        return True

    def may_run_at_once(self) -> bool:
        """Not where each task waits for the one before: the iterations of a parallel loop all wait for the one in front
        of the loop."""
        return self.chain is None or self.role == SCOPE

    # --- runtime scopes -----------------------------------------------------------------------------------------------

    def runtime_scope(self) -> bool:
        """A hand-placed ``with pl.scope()``."""
        base, self.scope_base = self.scope_base, len(self.loops)
        with self.block("with pl.scope():"):
            self.statements(1, 4)
        self.scope_base = base
        self.g.saw("runtime scope AUTO")
        return True

    def may_launch(self) -> bool:
        """Whether kernels may be launched here: a kernel scope needs the CHIP level, or no level around it."""
        return self.level in ("", "CHIP")

    def may_call(self, callee: Callee) -> bool:
        """Whether an inline method may be called here."""
        return callee.inline and (callee.scalars > 0 or self.may_launch())

    def may_nest(self) -> bool:
        """Whether a hierarchy scope may stand here."""
        return self.levelled and self.chain is None and bool(INNER_LEVELS[self.level])

    def hierarchy_scope(self) -> bool:
        """Host code that becomes a function of another level; kernels are launched at the CHIP level alone, the others
        compute with tensors."""
        g = self.g
        around, level = self.level, g.pick(INNER_LEVELS[self.level])
        math, stores, manual = self.host_math, self.host_stores, self.manual
        base, self.scope_base = self.scope_base, len(self.loops)
        self.level, self.manual = level, False
        self.host_math = self.host_stores = not self.may_launch() or math
        role = ", role=pl.Role.Orchestrator" if level != "CHIP_DIE" and g.chance(30) else ""
        hint = f', name_hint="{g.pick(("stage", "step"))}"' if g.chance(20) else ""
        before = dict(self.env.live)
        arrays = self.hide_arrays()  # an array can't cross the border of the function that the scope becomes
        with self.block(f"with pl.at(level=pl.Level.{level}{role}{hint}):"):
            self.statements(1, 3)
            if self.may_nest() and g.chance(50):
                self.hierarchy_scope()
            if self.host_stores:
                self.finish_stores(False)
            elif self.scopes and g.chance(50):
                self.kernel_scope()
        self.hide_arrays()
        self.env.live.update(arrays)
        for name, value in list(self.env.live.items()):
            if value.type.shaped and before.get(name) is not value:
                self.note_launched(name)
        self.level, self.manual = around, manual
        self.host_math, self.host_stores = math, stores
        self.scope_base = base
        g.saw("hierarchy scope", f"hierarchy scope {level}", *(["hierarchy scopes nested"] if around else []))
        if self.loops:
            g.saw("hierarchy scope in a loop")
        return True

    def hide_arrays(self) -> dict[str, Value]:
        """Forget the arrays of task ids; they are returned."""
        live = self.env.live
        return {name: live.pop(name) for name in list(live) if live[name].type.kind == "tasks"}

    def manual_scope(self) -> bool:
        """``with pl.manual_scope()``: only explicit dependencies order tasks, so each waits for the one before. It works
        on tensors that no task in front of it uses, and that no other iteration of a loop around it does."""
        g, env = self.g, self.env
        if not any(not c.inline for c in self.callees) and not self.scopes:
            return False
        level = len(self.loops)

        roots = {r for v in env.live.values() for r in v.roots}
        foreign = {r for r in roots if r.touched or not r.fixed and (r.read or r.level < level)}

        def usable(name: str) -> bool:
            return foreign.isdisjoint(env.live[name].roots)

        if not any(self.can_write(n) and usable(n) for n in env.of(F32, full=False) + env.of(TALL, full=False)):
            name = self.fresh("t")
            self.put(f"{name} = pl.create_tensor({list(F32.shape)}, dtype=pl.FP32)")
            self.assign(name, self.made_here(F32, full=False))
        chain = self.target(TASK)
        self.put(f"{chain} = None")
        self.assign(chain, Value(TASK))
        outer, self.usable = self.usable, usable
        self.chain = chain
        base, self.scope_base = self.scope_base, len(self.loops)
        head = g.pick(("with pl.manual_scope():", "with pl.scope(mode=pl.ScopeMode.MANUAL):"))
        with self.block(head), self.keeping(chain):
            self.statements(2, 5)
        self.scope_base = base
        self.usable = outer
        self.chain = None
        g.saw("runtime scope MANUAL")
        return True

    # --- helpers ------------------------------------------------------------------------------------------------------

    def helper_call(self) -> bool:
        """A call of an inline method: an assignment, with one result or several."""
        callee = self.g.pick([c for c in self.callees if self.may_call(c)])
        outputs = self.outputs(callee)
        if outputs is None:
            return False
        written = (
            frozenset().union(*(self.env.live[n].roots for n in outputs.values() if n)) if outputs else frozenset()
        )
        args = []
        for i, param in enumerate(callee.params):
            text = outputs[i] if i in outputs else self.argument(param, written, ["no launch"])
            if text is None:
                return False
            args.append(text)
        results = self.take_results(callee, outputs) if outputs else self.scalar_results(callee)
        self.put(f"{', '.join(results)} = self.{callee.name}({', '.join(args)})")
        self.g.saw("inline method", *(["inline method with several results"] if len(results) > 1 else []))
        return True

    def scalar_results(self, callee: Callee) -> list[str]:
        names = self.result_names([INDEX] * callee.scalars)
        for name in names:
            self.assign(name, Value(INDEX))
        return names


class Inside:
    """Statements in a kernel scope: other operations, and loops outside that cannot be left."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def __enter__(self) -> None:
        host = self.host
        self.role, self.base = host.role, host.scope_base
        host.role, host.scope_base = SCOPE, len(host.loops)

    def __exit__(self, *_: object) -> None:
        self.host.role, self.host.scope_base = self.role, self.base
