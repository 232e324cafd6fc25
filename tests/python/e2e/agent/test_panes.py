"""What the editor shows of values at a stop, asked for through the real debug adapter."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.python.e2e.agent.differential import same_as_without_us
from tests.python.e2e.agent.looking import below, stopped
from tests.support.debug_adapter import bundled_debugpy
from tests.support.debug_client import Launch, RequestFailed, Script, launch
from tests.support.session_server import SessionServer

pytestmark = pytest.mark.e2e

FLAVOURS: dict[str, Callable[[], Launch]] = {
    "compiled": Launch,
    "pure": lambda: Launch(environment={"PYDEVD_USE_CYTHON": "NO"}),
    "bundled": lambda: Launch(debugpy=bundled_debugpy()),
}
"""The debugger has a part in C where there is a wheel for the platform, and does without it; that
which the extension brings never has it."""

VALUES = """
import collections, dataclasses, numpy, types, warnings
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
try:
    from torch.distributed.tensor import Shard, distribute_tensor
except ImportError:  # torch 2.4
    from torch.distributed._tensor import Shard, distribute_tensor
from torch.testing._internal.distributed.fake_pg import FakeStore
import torch._subclasses.fake_tensor as fake_tensor
torch.manual_seed(0)
warnings.simplefilter("ignore")
torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)

READ = []

def counted(owner, name):
    original = getattr(owner, name)
    def call(*args, **keywords):
        READ.append(name)
        return original(*args, **keywords)
    setattr(owner, name, call)

for name in ("__repr__", "__str__", "__format__", "item", "tolist", "numpy", "cpu", "to", "clone",
             "__bool__", "__float__", "__int__", "__array__", "__iter__", "__getitem__"):
    counted(torch.Tensor, name)
for storage in (torch.UntypedStorage, torch.TypedStorage):
    for name in ("__repr__", "__str__", "__getitem__", "__iter__", "tolist"):
        counted(storage, name)
for name in ("synchronize", "current_stream", "is_available"):
    counted(torch.cuda, name)
counted(numpy, "array_repr")

def of_every_kind():
    for name, kind in sorted(vars(torch).items()):
        if isinstance(kind, torch.dtype):
            try:
                yield name, torch.empty(2, 3, dtype=kind)
            except (RuntimeError, NotImplementedError):
                yield name, torch.empty(2, 3, dtype=kind, device="meta")

class Kernels(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        READ.append(str(func))
        return func(*args, **(kwargs or {}))

class Functions(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        READ.append(str(func))
        return func(*args, **(kwargs or {}))

class Forbidding(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("forbidden")
    def __repr__(self):
        raise RuntimeError("forbidden")

class Weird(nn.Module):
    def __getattr__(self, name):
        raise RuntimeError(f"no {name} today")

@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    size: int = 2
    @property
    def loss(self):
        READ.append("property")

Pair = collections.namedtuple("Pair", "a b")

def look():
    plain = torch.ones(2, 16, 64)
    scalar = torch.tensor(0.5)
    learned = nn.Parameter(torch.ones(3))
    product = learned * 2
    huge = torch.empty(10**9, device="meta")
    large = torch.zeros(64 << 20)
    raising = torch.ones(2).as_subclass(Forbidding)
    with fake_tensor.FakeTensorMode():
        fake = torch.empty(2, 3, device="cuda")
    sparse = torch.eye(3).to_sparse()
    compressed = torch.eye(3).to_sparse_csr()
    ragged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    spread = distribute_tensor(torch.ones(4, 2), init_device_mesh("cpu", (2,)), [Shard(0)])
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    kinds = types.SimpleNamespace(**dict(of_every_kind()))
    storage = torch.zeros(2 << 20).untyped_storage()
    typed = torch.TypedStorage([1.0, 2.0])
    a_list = [plain] * 12
    a_tuple = (plain, scalar)
    a_dict = {"input_ids": torch.ones(2, 7).long(), "step": 3}
    a_set = {scalar}
    pair = Pair(plain, 1)
    batch = Batch(plain)
    itself = [plain]
    itself.append(itself)
    many = {key: key for key in range(1_000_000)}
    many_tensors = dict.fromkeys(range(1_000_000), scalar)
    array = numpy.ones((2, 3))
    linear = nn.Linear(512, 784)
    optimizer = torch.optim.Adam([learned], lr=torch.tensor(0.1))
    learned.sum().backward()
    optimizer.step()
    state, rates = optimizer.state, {learned: 0.1}
    lazy = nn.LazyLinear(4)
    weird = Weird()
    numbers, text = [1, 2, 3], "abc"
    method = plain.backward
    before = plain._version, torch.get_rng_state().sum().item()
    with Kernels(), Functions():
        READ.clear()
        inside = 1  # @stop
        read = list(READ)
    print(read, before == (plain._version, torch.get_rng_state().sum().item()))
    print(product.grad_fn)

AT_MODULE_LEVEL = torch.ones(5)
look()
"""

SHOWN = {
    "plain": "f32[2,16,64]",
    "scalar": "f32[]",
    "learned": "f32[3] · Parameter · requires grad",
    "product": "f32[3] · requires grad",
    "huge": "f32[1000000000]@meta",
    "large": "f32[67108864]",
    "raising": "f32[2] · Forbidding",
    "fake": "f32[2,3]@cuda:0 · FakeTensor",
    "sparse": "f32[3,3] · sparse_coo · 3 stored",
    "compressed": "f32[3,3] · sparse_csr · 3 stored",
    "ragged": "f32[?] · nested",
    "quantized": "qu8[2]",
    "spread": "f32[4,2] · DTensor · S(0) · local f32[2,2]",
    "freed": "f32[4]",
    "typed": "TypedStorage · float32 · 8 B",
    "state": "defaultdict(f32[3]: {step: f32[], exp_avg: f32[3], exp_avg_sq: f32[3]})",
    "rates": "{f32[3]: 0.1}",
    "storage": "UntypedStorage · 8 MiB",
    "a_list": "[f32[2,16,64] ×12]",
    "a_tuple": "(f32[2,16,64], f32[])",
    "a_dict": "{input_ids: i64[2,7], step: 3}",
    "a_set": "{f32[]}",
    "pair": "Pair(a: f32[2,16,64], b: 1)",
    "batch": "Batch(x: f32[2,16,64], size: 2)",
    "itself": "[f32[2,16,64], …]",
    "many_tensors": "{" + ", ".join(f"{key}: f32[]" for key in range(16)) + ", …} 1,000,000 items",
    "array": "ndarray f64[2,3]",
    "linear": "Linear(512 → 784) 402k params",
    "lazy": "LazyLinear(? → 4) not initialized",
    "weird": "Weird()",
    "numbers": "[1, 2, 3]",
    "text": "'abc'",
}


EXPRESSIONS = {
    "a_list[3]": "f32[2,16,64]",
    "a_dict['input_ids']": "i64[2,7]",
    "batch.x": "f32[2,16,64]",
    "pair.a": "f32[2,16,64]",
    "linear.weight": "f32[784,512] · Parameter · requires grad",
    "kinds.bfloat16": "bf16[2,3]",
    "kinds.float8_e5m2": "f8e5m2[2,3]",
}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_kind_of_value_and_nothing_is_read(flavour: str, tmp_path: Path) -> None:
    script = Script.write(VALUES, tmp_path)
    how = FLAVOURS[flavour]()
    with SessionServer() as server:
        with launch(script, server.launch(how=how)) as session:
            stop = stopped(session)
            variables = session.variables(stop.top)
            assert {name: variables[name] for name in SHOWN} == SHOWN
            assert variables["jagged"].endswith("] · jagged · NestedTensor")
            assert session.variables(stop.top, "Globals")["AT_MODULE_LEVEL"] == "f32[5]"
            # As Watch asks, the hover over an expression, and the values at the ends of lines.
            for context in ("watch", "hover"):
                for name, text in SHOWN.items():
                    assert session.evaluate(name, stop.top, context) == text
                for expression, text in EXPRESSIONS.items():
                    assert session.evaluate(expression, stop.top, context) == text
            assert session.evaluate("storage", stop.top, "repl") == SHOWN["storage"]
            for name in ("kinds", "state", "batch", "pair", "optimizer", "many", "many_tensors"):
                assert below(session, session.scope(stop.top, "Locals"), name)
            scope = session.scope(stop.top, "Locals")
            assert below(session, scope, "linear").keys() >= {"weight"}
            assert variables["function variables"] == ""
            (method,) = below(session, scope, "function variables").values()
            assert method["value"] == "<bound method Tensor.backward of f32[2,16,64]>"
            session.resume()
            ended = session.end()
        heard = server.process()
        heard.wait_for_end()
    assert ended.stdout.splitlines()[0] == "[] True", ended.stderr
    assert "MulBackward0" in ended.stdout
    assert [note for note in heard.coverage if "fault" in note.reason] == []


OPENED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.size = 7

    def forward(self, x):
        y = x * 2  # @made
        pair = (y, [y])
        return self.layers(y)  # @stop

net = Net()
state = torch.get_rng_state()
out = net(torch.arange(8.0).reshape(2, 4).requires_grad_())
print(torch.equal(state, torch.get_rng_state()), str(out.grad_fn).partition(' ')[0])
print(net.size, net.layers[1])
"""


def linked(script: Script, mark: str) -> str:
    """A line as what can be read, and as a link to it."""
    line = script.marks[mark]
    return f"{script.path.name}:{line} · {script.path}:{line}"


def test_opening_a_tensor_and_a_module(tmp_path: Path) -> None:
    script = Script.write(OPENED, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        stop = stopped(session)
        scope = session.scope(stop.top, "Locals")
        shown = below(session, scope, "y")
        assert {name: each["value"] for name, each in shown.items()} == {
            "shape": "(2, 4)",
            "dtype": "torch.float32",
            "device": "cpu",
            "memory": "32 B",
            "strides": "(4, 1) · contiguous",
            "requires_grad": "True",
            "grad_fn": "MulBackward0",
            "statistics": "min 0 · max 14 · mean 7 · no nan",
            "first values": "0, 2, 4, 6, 8, 10, 12, 14",
            "assigned at": linked(script, "made"),
            "items": "2",
            "more": "",
        }
        watched = ["shape", "dtype", "device", "memory", "requires_grad", "grad_fn"]
        assert [shown[name]["evaluateName"] for name in watched] == [
            *("y.shape", "y.dtype", "y.device", "y.nbytes", "y.requires_grad", "y.grad_fn")
        ]
        row = below(session, scope, "y", "items")["[1]"]
        assert (row["value"], row["evaluateName"]) == ("f32[4] · requires grad", "y[1]")
        assert below(session, scope, "pair")["1"]["evaluateName"] == "pair[1]"

        layers = below(session, scope, "self")["layers"]
        assert layers["value"] == "Sequential(Linear, ReLU) 20 params"
        weight = below(session, scope, "self", "layers", "0")["weight"]
        expression = weight["evaluateName"]
        assert expression == "self.layers[0].weight"
        assert session.evaluate(expression, stop.top, "watch") == weight["value"]
        assert session.evaluate(expression + ".shape", stop.top) == "torch.Size([4, 4])"


def calls_heard(script: Script, looks: bool) -> list[str]:
    """The calls that were recorded, where somebody opens everything at a stop, or nothing."""
    with SessionServer() as server:
        how = replace(server.launch(), environment=server.environment(level="aten"))
        with launch(script, how) as session:
            scope = session.scope(stopped(session).top, "Locals")
            for names in (("y",), ("y", "items"), ("y", "more"), ("self", "layers"), ("pair",)):
                if looks:
                    below(session, scope, *names)
            session.resume()
            assert session.end().stdout.startswith("True <ReluBackward0")
        heard = server.process()
        heard.wait_for_end()
    assert {op.level for op in heard.ops.values()} == {"torch", "aten"}
    return heard.calls()


def test_what_is_read_when_it_is_opened_is_not_recorded(tmp_path: Path) -> None:
    script = Script.write(OPENED, tmp_path)
    calls = calls_heard(script, looks=True)
    assert calls == calls_heard(script, looks=False)
    assert any("linear" in call for call in calls)


def test_the_expression_of_what_is_below_an_expression(tmp_path: Path) -> None:
    script = Script.write(OPENED, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        stop = stopped(session)
        answer = session.connection.request(
            "evaluate", expression="x + y", context="watch", frameId=stop.top.number
        )
        assert answer["result"] == "f32[2,4] · requires grad"
        shape = below(session, answer["variablesReference"])["shape"]
        assert shape["evaluateName"] == "(x + y).shape"
        assert session.evaluate(shape["evaluateName"], stop.top) == "torch.Size([2, 4])"


def test_values_are_set_and_copied_as_ever(tmp_path: Path) -> None:
    def drive(watched: Any) -> None:
        session = watched.session
        stop = stopped(session)
        for expression in ("y", "self", "pair", "[y]", "x.untyped_storage()", "self.layers"):
            watched.see(session.evaluate(expression, stop.top, "clipboard"))
        for expression in ("repr(y)", "str(y)", "f'{y}'", "print(y)", "y.tolist()", "y.shape"):
            watched.see(session.evaluate(expression, stop.top))
        session.set_variable(stop.top, "y", "torch.ones(3, 4)")
        watched.see(session.evaluate("repr(y), y.shape", stop.top))
        session.resume()
        watched.end()

    same_as_without_us(OPENED, drive, tmp_path)


def test_what_is_below_a_value_can_be_set(tmp_path: Path) -> None:
    script = Script.write(OPENED, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        stop = stopped(session)
        scope = session.scope(stop.top, "Locals")
        own = below(session, scope)["self"]["variablesReference"]

        def put(reference: int, name: str, value: str) -> str:
            answer = session.connection.request(
                "setVariable", variablesReference=reference, name=name, value=value
            )
            return str(answer["value"])

        assert put(scope, "y", "torch.ones(5)") == "f32[5]"
        made = below(session, scope)["y"]["variablesReference"]
        assert put(made, "requires_grad", "True") == "True"
        assert session.evaluate("y", stop.top) == "f32[5] · requires grad"
        assert put(own, "size", "9") == "9"
        layers = below(session, own)["layers"]["variablesReference"]
        assert put(layers, "1", "torch.nn.GELU()") == "GELU()"
        put(scope, "y", "torch.ones(2, 4)")
        with pytest.raises(RequestFailed):
            put(below(session, scope)["y"]["variablesReference"], "statistics", "3")
        session.resume()
        assert session.end().stdout.splitlines()[1] == "9 GELU(approximate='none')"


def test_what_the_debugger_groups_keeps_its_text(tmp_path: Path) -> None:
    script = Script.write(
        """
        import torch
        from torch import nn
        items, many = [torch.ones(2)] * 300, [torch.ones(2)] * 3000
        kinds, call = [nn.Linear], torch.ones(2).backward
        print()  # @stop
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        stop = stopped(session)
        assert session.variables(stop.top)["function variables"] == ""
        scope = session.scope(stop.top, "Locals")
        assert below(session, scope, "items")["more"]["value"] == "[100:300]"
        assert below(session, scope, "items", "more")["299"]["value"] == "f32[2]"
        assert below(session, scope, "many")["more"]["value"] == "..."
        assert below(session, scope, "many", "more", "[100:1100]")["0100"]["value"] == "f32[2]"


@pytest.mark.parametrize("way", ["pane", "statement", "expression"])
def test_a_value_that_was_set_at_a_stop_was_assigned_nowhere(way: str, tmp_path: Path) -> None:
    script = Script.write(OPENED, tmp_path)
    with SessionServer() as server, launch(script, server.launch()) as session:
        stop = stopped(session)
        scope = session.scope(stop.top, "Locals")
        session.evaluate("y.sum()", stop.top)
        assert "assigned at" in below(session, scope, "y")
        if way == "pane":
            session.set_variable(stop.top, "y", "torch.ones(3, 4)")
        else:
            statement = "y = torch.ones(3, 4)"
            text = statement if way == "statement" else "(y := torch.ones(3, 4))"
            session.evaluate(text, stop.top)
        changed = below(session, scope, "y")
        assert changed["shape"]["value"] == "(3, 4)"
        assert "assigned at" not in changed


def test_where_a_script_assigned_its_variables(tmp_path: Path) -> None:
    script = Script.write(
        """
        import torch
        def look(it):
            return it.sum()  # @stop
        with torch.no_grad():
            x = torch.ones(2, 3)  # @made
        look(x)
        """,
        tmp_path,
    )
    with ExitStack() as stack:
        server = stack.enter_context(SessionServer())
        environment = server.environment(folder=str(tmp_path))
        how = replace(server.launch(), environment=environment)
        session = stack.enter_context(launch(script, how))
        stop = stopped(session)
        scope = session.scope(stop.top, "Locals")
        made = below(session, scope, "it")["assigned at"]["value"]
        assert made == f"./program.py:{script.marks['made']}"
        session.connection.request(
            "setVariable",
            variablesReference=session.scope(stop.top, "Globals"),
            name="x",
            value="torch.ones(5)",
        )
        changed = below(session, session.scope(stop.top, "Globals"), "x")
        assert changed["shape"]["value"] == "(5,)"
        assert "assigned at" not in changed
