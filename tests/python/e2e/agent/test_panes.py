"""What the editor shows of values at a stop, asked for through the real debug adapter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shapetrace.transport.session import Level
from tests.python.e2e.agent.differential import debug, same_as_without_us
from tests.support.debug_client import DebugSession, Launch, RequestFailed, Script, Stop, launch
from tests.support.session_server import BACKEND, SessionServer

pytestmark = pytest.mark.e2e

FLAVOURS = {"compiled": {}, "pure": {"PYDEVD_USE_CYTHON": "NO"}}
"""The debugger has a part in C where there is a wheel for the platform, and does without it."""

VALUES = """
import collections, dataclasses, numpy, types
import torch
from torch import nn
import torch._subclasses.fake_tensor as fake_tensor
torch.manual_seed(0)

READ = []

def counted(owner, name):
    original = getattr(owner, name)
    def call(*args, **keywords):
        READ.append(name)
        return original(*args, **keywords)
    setattr(owner, name, call)

for name in ("__repr__", "__str__", "__format__", "item", "tolist", "numpy", "cpu", "to", "clone"):
    counted(torch.Tensor, name)
counted(torch.UntypedStorage, "__repr__")
counted(torch.cuda, "synchronize")

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
    storage = torch.zeros(2 << 20).untyped_storage()
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


def stopped(session: DebugSession, mark: str = "stop") -> Stop:
    session.break_at(mark)
    session.go()
    stop = session.stop()
    session.clear_breakpoints()
    return stop


def below(session: DebugSession, reference: int, *names: str) -> dict[str, dict[str, Any]]:
    """What opening an entry shows, and then the entries of these names in turn."""
    found = {each["name"]: each for each in session.children(reference)}
    for name in names:
        found = {each["name"]: each for each in session.children(found[name]["variablesReference"])}
    return found


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_kind_of_value_and_nothing_is_read(flavour: str, tmp_path: Path) -> None:
    script = Script.write(VALUES, tmp_path)
    how = Launch(environment=FLAVOURS[flavour])
    with SessionServer() as server:
        with launch(script, server.launch(how=how)) as session:
            stop = stopped(session)
            variables = session.variables(stop.top)
            assert {name: variables[name] for name in SHOWN} == SHOWN
            for context in ("watch", "hover", "repl"):
                for name in ("plain", "a_dict", "storage", "raising"):
                    assert session.evaluate(name, stop.top, context) == SHOWN[name]
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
            "assigned at": f"{script.path}:{script.marks['made']}",
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


def test_where_it_was_assigned_is_told_from_the_folder_that_is_open(tmp_path: Path) -> None:
    script = Script.write(OPENED, tmp_path)
    with SessionServer() as server:
        environment = server.environment(folder=str(script.path.parent))
        how = replace(server.launch(), environment=environment)
        with launch(script, how) as session:
            scope = session.scope(stopped(session).top, "Locals")
            made = below(session, scope, "y")["assigned at"]
            assert made["value"] == f"./{script.path.name}:{script.marks['made']}"


def calls_heard(script: Script, level: Level, looks: bool) -> list[str]:
    """The calls that were recorded, where somebody opens everything at a stop, or nothing."""
    with SessionServer() as server:
        how = replace(server.launch(), environment=server.environment(level=level))
        with launch(script, how) as session:
            scope = session.scope(stopped(session).top, "Locals")
            for names in (("y",), ("y", "items"), ("y", "more"), ("self", "layers"), ("pair",)):
                if looks:
                    below(session, scope, *names)
            session.resume()
            assert session.end().stdout.startswith("True <ReluBackward0")
        heard = server.process()
        heard.wait_for_end()
    return heard.calls()


@pytest.mark.parametrize("level", ["torch", "aten"])
def test_what_is_read_when_it_is_opened_is_not_recorded(level: Level, tmp_path: Path) -> None:
    script = Script.write(OPENED, tmp_path)
    calls = calls_heard(script, level, looks=True)
    assert calls == calls_heard(script, level, looks=False)
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


def test_a_stop_before_torch_is_there(tmp_path: Path) -> None:
    """Lists and objects that were looked at then are looked at again later."""
    script = Script.write(
        """
        class Holder:
            pass

        early, held = [1], Holder()
        print("here")  # @early
        import torch
        early.append(torch.ones(2))
        held.x = torch.ones(3)
        print("there")  # @late
        """,
        tmp_path,
    )
    with SessionServer() as server, launch(script, server.launch()) as session:
        session.break_at("early", "late")
        session.go()
        first = session.variables(session.stop().top)
        assert first["early"] == "[1]"
        assert first["held"].startswith("<__main__.Holder object at ")
        session.resume()
        then = session.variables(session.stop().top)
        assert (then["early"], then["held"]) == ("[1, f32[2]]", "Holder(x: f32[3])")


def test_they_come_in_at_a_stop_as_well(tmp_path: Path) -> None:
    """As when the editor attaches to a program that was started without us."""
    script = Script.write(OPENED, tmp_path)
    with launch(script) as session:
        stop = stopped(session)
        assert session.variables(stop.top)["y"].startswith("tensor(")
        assert session.variables(stop.top)["pair"].startswith("(tensor(")
        come_in = (
            f"__import__('sys').path.insert(0, {str(BACKEND)!r}) or "
            "__import__('shapetrace.agent.panes').agent.panes.show_shapes()"
        )
        assert session.evaluate(come_in, stop.top) == "True"
        assert session.evaluate(come_in, stop.top) == "True"
        variables = session.variables(stop.top)
        assert variables["y"] == "f32[2,4] · requires grad"
        assert variables["pair"].startswith("(f32[2,4], [f32[2,4]])")
        scope = session.scope(stop.top, "Locals")
        assert below(session, scope, "y")["shape"]["value"] == "(2, 4)"


OTHERS = """
from _pydevd_bundle.pydevd_extension_api import StrPresentationProvider

class Theirs(StrPresentationProvider):
    def can_provide(self, kind, name):
        return name == "Table"

    def get_str(self, value):
        return "a table of theirs"
"""


def test_what_another_plugin_shows_stays_as_it_is(tmp_path: Path) -> None:
    plugins = tmp_path / "others" / "pydevd_plugins"
    for folder in (plugins, plugins / "extensions"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(
            "import pkgutil\n__path__ = pkgutil.extend_path(__path__, __name__)\n"
        )
    (plugins / "extensions" / "pydevd_plugin_theirs.py").write_text(OTHERS)
    script = Script.write(
        """
        import torch
        class Table:
            def __init__(self):
                self.x = torch.ones(2)
        table, tables = Table(), [Table()]
        print()  # @stop
        """,
        tmp_path,
    )
    with SessionServer() as server:
        ours = server.launch()
        path = f"{ours.environment['PYTHONPATH']}:{plugins.parent}"
        how = Launch(environment={**ours.environment, "PYTHONPATH": path}, rules=ours.rules)
        with launch(script, how) as session:
            variables = session.variables(stopped(session).top)
    assert variables["table"] == "a table of theirs"
    assert variables["tables"] == "[Table(x: f32[2])]"


def test_a_program_without_torch_is_shown_as_without_us(tmp_path: Path) -> None:
    script = Script.write(
        """
        import collections, dataclasses, types
        @dataclasses.dataclass
        class Point:
            x: int = 1
        class Own:
            def __repr__(self):
                return "own text"
        values = [1, (2,), {"a": {3}}, Point(), Own(), collections.deque([1]), types, print]
        space, nothing, error = types.SimpleNamespace(a=1), None, ValueError("x")
        print()  # @stop
        """,
        tmp_path,
    )

    def drive(watched: Any) -> None:
        session = watched.session
        stop = stopped(session)
        variables = session.variables(stop.top)
        watched.see([variables[name] for name in ("values", "space", "nothing", "error")])
        for each in session.children(
            below(session, session.scope(stop.top, "Locals"))["values"]["variablesReference"]
        ):
            watched.see((each["name"], each["value"], each["type"], each.get("evaluateName")))

    with SessionServer() as server:
        assert debug(script, drive, Launch()) == debug(script, drive, Launch(), server)
