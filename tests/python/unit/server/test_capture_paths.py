"""By which paths what is at a place is captured: the place is before the ``^``."""

from __future__ import annotations

import pytest

from shapetrace.capture.paths import parse
from shapetrace.server.features.capture_paths import paths_at, paths_of_call
from shapetrace.server.file_records import Key
from shapetrace.server.messages.captures import CapturePaths
from shapetrace.server.source_structure import Structure
from tests.python.unit.server.annotated import Shown, show

PROGRAM = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.scale: float = 0.5

    def split(self, x, heads=2):
        parts = x.chunk(heads, -1)
        return torch.stack(parts)

    @staticmethod
    def norm(x):
        length = x.norm()
        return x / length

    def forward(self, x, *, mask=None):
        q = self.split(self.query(x))
        scores = q @ q.transpose(-2, -1) * self.scale
        outs = {"scores": scores, "raw": [q]}
        weights = outs["scores"].softmax(-1)

        def mix(values):
            mixed = weights @ values
            return mixed + values

        if (top := weights.amax()) > 2:
            print("large")
        for part in weights:
            part = part + 1
        self.norm(x)
        return mix(outs["raw"][0])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x):
        return x + self.attention(x).sum(0).sum()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Attention()
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def helper(x):
    doubled = x * 2
    return doubled


net = Net()
out = net(helper(torch.ones(2, 4)))
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return show(PROGRAM, tmp_path_factory.mktemp("paths") / "program.py")


def found(shown: Shown, place: str, ran: bool = True, chosen: Key | None = None) -> CapturePaths:
    before, _, behind = place.partition("^")
    text = "\n".join(shown.document.lines)
    assert text.count(before + behind) == 1, place
    lines = text[: text.index(before + behind) + len(before)].split("\n")
    where = (len(lines), len(lines[-1].encode()))
    view = shown.view() if ran else None
    return paths_at(Structure(text), *where, view, shown.store, chosen)


def listed(paths: CapturePaths) -> list[str]:
    for each in paths.paths:
        parse(each.path)
    return [f"{each.path}: {each.description}" for each in paths.paths]


IN_ATTENTION = [
    "blocks.*.attention.forward.{}: 3 modules",
    "blocks.0.attention.forward.{}: Attention",
    "blocks.1.attention.forward.{}: Attention",
    "blocks.2.attention.forward.{}: Attention",
    "head.forward.{}: Attention",
    "**.forward.{}: in all modules that have one",
]


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("sco^res = q", "scores"),
        ('{"scores": scores^, "raw"', "scores"),
        ("forward(self, x, *, ma^sk=None)", "mask"),
        ('weights = ou^ts["scores"]', "outs"),
        ('weights = outs["sco^res"]', "outs.scores"),
        ("if (to^p := weights.amax())", "top"),
        ("for pa^rt in weights", "part"),
        ("            mix^ed = weights", "mix.mixed"),
        ("            mixed = weig^hts", "weights"),
        ("return mix(ou^ts[", "outs"),
        ('return mix(outs["ra^w"][0])', "outs.raw"),
        ("return m^ix(outs", "mix"),
        ("scores = q @ q.trans^pose(", "scores"),
        ("        return mixed ^+ values", "mix"),
    ],
)
def test_a_variable_is_captured_in_every_module_its_function_ran_in(
    shown: Shown, place: str, name: str
) -> None:
    assert listed(found(shown, place)) == [each.format(name) for each in IN_ATTENTION]
    assert listed(found(shown, place, ran=False)) == [
        f"**.forward.{name}: in all modules that have one"
    ]


def test_where_it_is_one_module_there_is_one_path(shown: Shown) -> None:
    assert listed(found(shown, "    for block in self.blocks:\n            x^ = block")) == [
        "forward.x: Net",
        "**.forward.x: in all modules that have one",
    ]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("        par^ts = x.chunk", "blocks.*.attention.split.parts"),
        ("def sp^lit(", "blocks.*.attention.split"),
        ("        return torch.^stack(parts)", "blocks.*.attention.split"),
        ("q = self.spl^it(", "blocks.*.attention.split"),
        ("        len^gth = x.norm()", "blocks.*.attention.norm.length"),
        ("def forw^ard(self, x, *", "blocks.*.attention.forward"),
        ("q = self.split(self.que^ry(x))", "blocks.*.attention.query"),
        ("self.que^ry = nn.Linear", "blocks.*.attention.query"),
        ("(-2, -1) * self.sca^le", "blocks.*.attention.forward.self.scale"),
        ("self.sca^le: float", "blocks.*.attention.forward.self.scale"),
        ("self.atte^ntion(x).sum(0)", "blocks.*.attention"),
        ("class Blo^ck(", "blocks.*"),
        ("in self.bloc^ks:", "blocks.*"),
        ("return self.he^ad(x)", "head"),
        ("class Ne^t(", "forward"),
    ],
)
def test_what_is_captured_first(shown: Shown, place: str, expected: str) -> None:
    assert found(shown, place).paths[0].path == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("q = self.split(self.que^ry(x))", "**.query"),
        ("self.que^ry = nn.Linear", "**.query"),
        ("self.attent^ion = Attention()", "**.attention"),
        ("(-2, -1) * self.sca^le", "**.forward.self.scale"),
        ("q = self.spl^it(", "**.split"),
    ],
)
def test_what_the_source_alone_tells(shown: Shown, place: str, expected: str) -> None:
    assert found(shown, place, ran=False).paths[0].path == expected


@pytest.mark.parametrize(
    "place",
    [
        "dou^bled = x * 2",
        "ne^t = Net()",
        "super().__in^it__()\n        self.query",
    ],
)
def test_of_some_things_nothing_is_captured(shown: Shown, place: str) -> None:
    assert found(shown, place) == CapturePaths("", ())
    assert found(shown, place, ran=False) == CapturePaths("", ())


def test_the_chosen_call_comes_first(shown: Shown) -> None:
    process = next(iter(shown.store.processes("session").values()))
    key = next(
        (process.number, call.id)
        for call in process.modules.values()
        if call.path == "blocks.2.attention"
    )
    paths = [each.path for each in found(shown, "sco^res = q", chosen=key).paths]
    assert paths[:3] == [
        "blocks.*.attention.forward.scores",
        "blocks.2.attention.forward.scores",
        "blocks.0.attention.forward.scores",
    ]


def test_what_a_node_of_the_tree_made(shown: Shown) -> None:
    process = next(iter(shown.store.processes("session").values()))
    structure = Structure("\n".join(shown.document.lines))

    def of(call: int) -> list[str]:
        return listed(paths_of_call(process, call, structure, shown.store))

    modules = {call.path: call.id for call in process.modules.values()}
    assert of(modules["blocks.1.attention"]) == [
        "blocks.1.attention: return value of Attention",
        "blocks.*.attention: 3 modules",
    ]
    assert of(modules[""]) == ["forward: return value of Net"]
    softmax = [op for op in process.ops.values() if op.label.startswith("softmax")]
    paths = [process.modules[op.module or 0].path for op in softmax]
    assert paths == ["blocks.0.attention", "blocks.1.attention", "blocks.2.attention", "head"]
    assert of(softmax[1].id) == [
        "blocks.1.attention.forward.weights: Attention",
        "blocks.*.attention.forward.weights: 3 modules",
        "**.forward.weights: in all modules that have one",
    ]
    assert of(12345) == []
