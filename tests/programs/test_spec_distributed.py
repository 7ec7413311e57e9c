"""The fragments of distributed programs: host, chip and kernel layers, collectives, and the forms that passes leave."""

import pytest
from spec_kit import check_round_trips, parse

import pypto.language as pl
from pypto import ir

W = "pl.InOut[pld.DistributedTensor[[2, 48], pl.FP32]]"
S = "pl.InOut[pld.DistributedTensor[[1, 4], pl.INT32]]"

TEXTS = {
    "push to the next rank": f"""
    @InCore
    def rotate(self, a: f32[2, 48], z: pl.Out[f32[2, 48]], box: {W}, bell: {S}) -> f32[2, 48]:
        ctx = pld.get_comm_ctx(box)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        nxt = (me + 1) % n
        t = pl.load(a, [0, 0], [2, 48])
        pld.tile.remote_store(t, box, peer=nxt, offsets=[0, 0])
        pld.system.notify(bell, peer=nxt, offsets=[0, 2], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(bell, offsets=[0, 2], expected=1, cmp=pld.WaitCmp.Ge)
        u = pl.load(box, [0, 0], [2, 48])
        return pl.store(u, [0, 0], z)
    @Orchestration
    def per_card(self, a: f32[2, 48], z: pl.Out[f32[2, 48]], box: {W}, bell: {S}) -> f32[2, 48]:
        z = self.rotate(a, z, box, bell)
        return z
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def rotate_all(self, x: f32[N, 2, 48], y: pl.Out[f32[N, 2, 48]]) -> f32[N, 2, 48]:
        bx = pld.alloc_window_buffer([2, 48], dtype=pl.FP32)
        bl = pld.alloc_window_buffer(4 * pl.INT32.get_byte())
        for r in pl.range(pld.world_size()):
            box = pld.window(bx, [2, 48], dtype=pl.FP32)
            bell = pld.window(bl, [1, 4], dtype=pl.INT32)
            self.per_card(x[r], y[r], box, bell, device=r)
        return y
    """,
    "contexts as parameters": f"""
    @InCore
    def rotate(self, a: f32[2, 48], z: pl.Out[f32[2, 48]], box: {W}, bell: {S},
               box_ctx: pld.CommCtxType, bell_ctx: pld.CommCtxType) -> f32[2, 48]:
        ctx__ssa_v0: pld.CommCtxType = box_ctx
        me: pl.Scalar[pl.INT32] = pld.system.rank(ctx__ssa_v0)
        n: pl.Scalar[pl.INT32] = pld.system.nranks(ctx__ssa_v0)
        nxt = (me + 1) % n
        t = pl.load(a, [0, 0], [2, 48])
        pld.tile.remote_store(t, box, nxt, [0, 0])
        pl.system.fence()
        pld.system.notify(bell, nxt, [0, 2], 1, op=pld.NotifyOp.AtomicAdd, attrs={{"core_placement": "aiv"}})
        pld.system.wait(bell, [0, 2], 1, cmp=pld.WaitCmp.Ge)
        pl.system.cacheinvalid()
        u = pl.load(box, [0, 0], [2, 48])
        z1 = pl.store(u, [0, 0], z)
        return z
    @Orchestration
    def per_card(self, a: f32[2, 48], z: pl.Out[f32[2, 48]], box: {W}, bell: {S},
                 box_ctx: pld.CommCtxType, bell_ctx: pld.CommCtxType) -> f32[2, 48]:
        z1 = self.rotate(a, z, box, bell, box_ctx, bell_ctx, attrs={{"arg_directions": [
            pl.adir.input, pl.adir.output_existing, pl.adir.inout, pl.adir.inout, pl.adir.scalar, pl.adir.scalar]}})
        return z1
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def rotate_all(self, x: f32[N, 2, 48], y: pl.Out[f32[N, 2, 48]]) -> f32[N, 2, 48]:
        bx: pl.Ptr = pld.tensor.alloc_window_buffer(pl.const(384, pl.INT64))
        bl: pl.Ptr = pld.tensor.alloc_window_buffer(16)
        n: pl.Scalar[pl.INT64] = pld.system.world_size()
        for r in pl.range(n):
            t1: f32[2, 48] = pl.tensor.slice(x, [1, 2, 48], [r, 0, 0], drop_dims=[0])
            t2: f32[2, 48] = pl.tensor.slice(y, [1, 2, 48], [r, 0, 0], drop_dims=[0])
            box: pld.DistributedTensor[[2, 48], pl.FP32, "window_buffer=bx"] = pld.tensor.window(
                bx, [2, 48], dtype=pl.FP32)
            bell: pld.DistributedTensor[[1, 4], pl.INT32] = pld.tensor.window(bl, [1, 4], dtype=pl.INT32)
            box_ctx: pld.CommCtxType = pld.system.get_comm_ctx(box)
            bell_ctx: pld.CommCtxType = pld.system.get_comm_ctx(bell)
            self.per_card(t1, t2, box, bell, box_ctx, bell_ctx, device=r, attrs={{"arg_directions": [
                pl.adir.input, pl.adir.output_existing, pl.adir.inout, pl.adir.inout, pl.adir.scalar, pl.adir.scalar]}})
        return y
    """,
    "a signal made by the compiler": """
    @Orchestration
    def card(self, d: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]):
        return
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self):
        gb = pld.tensor.alloc_window_buffer(256)
        g = pld.tensor.window(gb, [1, 64], dtype=pl.FP32)
        __allreduce_signal_world_size_0 = pld.system.world_size()
        __allreduce_signal_buf_0: pl.Ptr = pld.tensor.alloc_window_buffer(__allreduce_signal_world_size_0 * 3 * 4)
        __allreduce_signal_0 = pld.tensor.window(__allreduce_signal_buf_0, [__allreduce_signal_world_size_0, 3],
                                                 dtype=pl.INT32)
        g = pld.tensor.allreduce(g, __allreduce_signal_0, op=pld.ReduceOp.Max, mode='mesh', core_num=3)
        for r in pl.range(__allreduce_signal_world_size_0):
            self.card(g, device=r)
    """,
    "two windows on all ranks": """
    @Orchestration
    def card(self, a: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]], b: pl.InOut[pld.DistributedTensor[[16], pl.INT32]]):
        return
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self):
        ink = pld.tensor.alloc_window_buffer(256)
        tick = pld.tensor.alloc_window_buffer(64)
        n = pld.system.world_size()
        for r in pl.range(n):
            a = pld.tensor.window(ink, [1, 64], dtype=pl.FP32)
            b = pld.tensor.window(tick, [16], dtype=pl.INT32)
            self.card(a, b, device=r)
    """,
    "windows of different ranks": """
    @Orchestration
    def card(self, d: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]]):
        return
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self):
        ab = pld.tensor.alloc_window_buffer(256)
        bb = pld.tensor.alloc_window_buffer(256)
        for r in pl.range(2):
            d = pld.tensor.window(ab, [1, 64], dtype=pl.FP32)
            self.card(d, device=r)
        e = pld.tensor.window(bb, [1, 64], dtype=pl.FP32)
        self.card(e, device=3)
    """,
    "builtin dispatches": """
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self):
        sb = pld.tensor.alloc_window_buffer(64)
        hb = pld.tensor.alloc_window_buffer([4, 64], dtype=pl.FP32)
        tb = pld.tensor.alloc_window_buffer([1, 64], dtype=pl.FP32)
        s = pld.tensor.window(sb, [16], dtype=pl.INT32)
        h = pld.tensor.window(hb, [4, 64], dtype=pl.FP32)
        bell = pld.tensor.window(sb, [4], dtype=pl.INT32)
        stage = pld.tensor.window(tb, [1, 64], dtype=pl.FP32)
        for r in pl.range(0, pld.system.world_size(), 1):
            pl.builtin.tensor.barrier(s, attrs={"device": r, "arg_directions": [pl.adir.inout]})
        s1 = s
        pl.builtin.tensor.allgather(stage, h, bell, dtype=pl.FP32, attrs={
            "device": 0, "arg_directions": [pl.adir.input, pl.adir.inout, pl.adir.inout]})
        pl.builtin.tensor.allgather(stage, h, bell, dtype=pl.FP32, attrs={
            "device": 2, "arg_directions": [pl.adir.input, pl.adir.inout, pl.adir.inout]})
        h1 = h
    """,
    "collectives in a kernel": """
    @InCore
    def f(self, local: f32[1, 64], t: pl.InOut[pld.DistributedTensor[[N, 64], pl.FP32]],
          r: pl.InOut[pld.DistributedTensor[[8, 64], pl.FP32]], i: pld.DistributedTensor[[8, 64], pl.FP32],
          s: pl.InOut[pld.DistributedTensor[[8, 1], pl.INT32]], d: pl.InOut[pld.DistributedTensor[[N, 1], pl.INT32]]):
        g = pld.tensor.allgather(local, t, d)
        b = pld.tensor.broadcast(g, d, root=0)
        q = pld.tensor.reduce_scatter(r, s)
        a = pld.tensor.all_to_all(i, q, s)
        m = pld.tensor.allreduce(a, s, op=pld.ReduceOp.Prod)
        c = pld.tensor.barrier(s)
    """,
    "a barrier spelled out": """
    @InCore
    def f(self, signal: pl.InOut[pld.DistributedTensor[[8, 1], pl.INT32]]):
        ctx = pld.system.get_comm_ctx(signal)
        n = pld.system.nranks(ctx)
        ni = pl.cast(n, pl.INDEX)
        me = pld.system.rank(ctx)
        for p in pl.range(ni):
            if p != pl.cast(me, pl.INDEX):
                pld.system.notify(signal, p, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
        for s in pl.range(ni):
            if s != pl.cast(me, pl.INDEX):
                pld.system.wait(signal, [s, 0], 1, cmp=pld.WaitCmp.Ge)
        for s in pl.range(ni):
            if s != pl.cast(me, pl.INDEX):
                pld.system.notify(signal, me, [s, 0], -1, op=pld.NotifyOp.AtomicAdd)
        result: pld.DistributedTensor[[8, 1], pl.INT32] = signal
    """,
    "a sum over the ranks spelled out": """
    @InCore
    def f(self, target: pl.InOut[pld.DistributedTensor[[8, 64], pl.FP32]],
          signal: pl.InOut[pld.DistributedTensor[[8, 1], pl.INT32]]) -> pld.DistributedTensor[[8, 64], pl.FP32]:
        ctx = pld.system.get_comm_ctx(signal)
        ni = pl.cast(pld.system.nranks(ctx), pl.INDEX)
        me = pl.cast(pld.system.rank(ctx), pl.INDEX)
        acc = pl.load(target, [me, 0], [1, 64])
        for p, (acc_it,) in pl.range(ni, init_values=(acc,)):
            if p != me:
                other = pld.tile.remote_load(target, p, [me, 0], [1, 64])
                more = pl.tile.add(acc_it, other)
                acc_phi = pl.yield_(more)
            else:
                acc_phi = pl.yield_(acc_it)
            acc_rv = pl.yield_(acc_phi)
        pld.system.notify(signal, peer=(me + 1) % ni, offsets=[me, 0], value=1, op=pld.NotifyOp.Set)
        target1 = pl.tile.store(acc_rv, [me, 0], target)
        return target1
    """,
    "puts and gets": """
    @InCore
    def f(self, src: f32[64, 64], dst: pl.InOut[f32[64, 64]], box: pl.InOut[pld.DistributedTensor[[64, 64], pl.FP32]],
          peer: pl.Scalar[pl.INT32]):
        pld.tensor.put(box, peer, src)
        pld.tensor.put(box, peer, src, [0, 0], [32, 0], [32, 64], atomic=pld.AtomicType.Add)
        pld.tensor.put(box, peer, src, chunk_rows=16, chunk_cols=64, pipeline=True)
        pld.tensor.get(dst, peer, box, dst_offsets=[0, 0], src_offsets=[0, 32], shape=[64, 32])
        stage = pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        stage2 = pl.tile.create([16, 64], dtype=pl.FP32, target_memory=pl.Mem.Vec)
        pld.tile.put(box, peer, src, stage)
        pld.tile.put(box, peer, src, stage, stage2)
        pld.tile.put(box, peer, src, stage, [0, 0], [32, 0], [32, 64])
        pld.tile.get(dst, peer, box, stage, stage2, [0, 0], [32, 0], [32, 64])
        pl.system.cacheinvalid(dst, [64, 64], [0, 0])
        pl.system.fence()
    """,
    "a deferred wait": """
    @Orchestration
    def card(self, bell: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]], y: pl.InOut[f32[8, 8]]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="arm") as tid:
            for p in pl.range(4):
                pld.system.defer_wait(bell, [p, 0], 1, cmp=pld.WaitCmp.Ge)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
            y = pl.assemble(y, pl.add(y, 1.0), [0, 0])
    """,
    "callbacks on the host": """
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def note(y: pl.InOut[f32[8, 8]]):
        y += 1
        print("sum", float(y.sum()))
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def abstract(y: pl.InOut[f32[8, 8]]):
        ...
    @Orchestration
    def card(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        return y
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        y1: f32[8, 8] = self.card(y, device=0)
        y2: f32[8, 8] = self.note(y1)
        y3: f32[8, 8] = self.abstract(y2)
        return y3
    """,
}


@pytest.mark.parametrize("name", TEXTS, ids=lambda n: n.replace(" ", "_"))
def test_round_trips(name):
    check_round_trips(parse(TEXTS[name]))


def test_ssa_names_keep_the_names_of_windows():
    """A window is named by its first variable; SSA conversion renames that, and the printed text must give it back."""
    plain = parse(TEXTS["windows of different ranks"])
    renamed = parse(TEXTS["windows of different ranks"].replace("ab", "ab__ssa_v0").replace("bb", "bb__ssa_v0"))
    ir.assert_structural_equal(plain, renamed, enable_auto_mapping=True)
    names = [s.value.kwargs["name"] for s in renamed.get_function("host").body.stmts[:2]]
    assert names == ["ab", "bb"]
    check_round_trips(renamed)


def test_users_can_not_write_builtins():
    text = TEXTS["builtin dispatches"].replace(', attrs={"device": r, "arg_directions": [pl.adir.inout]}', "")
    with pytest.raises(pl.parser.ParserError, match="Unsupported operation call: pl.builtin.tensor.barrier"):
        parse(text)


def test_the_domain_scope_prints_as_a_comment():
    """The reader gets the statements; the scope itself has no text (§9)."""
    node = parse(TEXTS["two windows on all ranks"])
    host = node.get_function("host")
    base = next(s.var for s in host.body.stmts if s.var.name_hint == "ink")
    slot = ir.WindowBuffer(base, ir.ConstInt(256, pl.INT64, ir.Span.unknown()), False, False)
    scope = ir.CommDomainScopeStmt([], [slot], "comm_d0", body=host.body, span=host.span)
    text = ir.python_print(host.replace(body=scope), "pl", format=False)
    assert "    # pld.comm_domain: devices=all, slots=[ink]\n    ink: pl.Ptr = " in text
    few = ir.CommDomainScopeStmt([0, 3], [slot], "comm_d0", body=host.body, span=host.span)
    assert "# pld.comm_domain: devices=[0, 3], slots=[ink]\n" in ir.python_print(host.replace(body=few), format=False)
