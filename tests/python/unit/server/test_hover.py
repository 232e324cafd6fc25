"""What is told of the expression under the mouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapetrace.events.model import Coverage
from shapetrace.events.update import Update
from shapetrace.server.features.code_lens import code_lenses
from shapetrace.server.features.hover import statement_story
from tests.python.unit.server.annotated import Shown, plain, show

PROGRAM = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 4)
            self.scale = nn.Parameter(torch.ones(4))
        def forward(self, x, mask=None):
            y = self.layer(x).relu() * self.scale
            for part in y.chunk(2):
                part.sum()
            if mask is not None:
                y = y.masked_fill(mask, 0)
            values, places = y.max(dim=1)
            out = torch.cat([y, y.t()[:, :2].t()], dim=0)
            return out, values
    class Big(nn.Module):
        def __init__(self):
            super().__init__()
            self.nets = nn.ModuleList([Net(), Net()])
        def forward(self, x):
            for net in self.nets:
                h, _ = net(x)
            everything = torch.ones(4, 4, dtype=torch.bool)
            return F.scaled_dot_product_attention(h, h, h, attn_mask=everything, dropout_p=0.0)
    big = Big()
    for size in range(2, 9):
        z = torch.ones(size, 5) + 1
        big(torch.ones(2, 3))
        big.nets[0](torch.ones(4, 3)[:2])
    größe = {"😀": z.sum() + 2}
    odd = z.to(torch.float64) @ z.to(torch.float64).T
    try:
        big(torch.ones(2, 5))
    except RuntimeError:
        pass
    def double(x): return (lambda v: v * 2)(x)
    double(z)
"""

# A place in the program, the piece of it that is marked, and what is told.
STORIES = {
    "a module call, with one that failed": (
        "self.layer^(x)",
        "self.layer(x)",
        """
        ```python
        Linear(x f32[2,3]) → f32[2,4]  ×21
            # nets.0.layer call 1, nets.1.layer, layer
        ✗ Linear(x f32[2,5])  # nets.0.layer call 8
        RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x5 and 3x4)
        ```
        float32 · cpu · 32 B · requires grad
        `nets.0.layer`, `nets.1.layer`, `layer` · `Linear(in_features=3, out_features=4, \
bias=True)` · 16 parameters each · 22 calls
        """,
    ),
    "an operator, with the module's own parameter": (
        "relu() ^* self",
        "self.layer(x).relu() * self.scale",
        """
        ```python
        f32[2,4] * scale f32[4] → f32[2,4]
        ```
        float32 · cpu · 32 B · requires grad
        `nets.0`, `nets.1` · Net · 21 calls
        """,
    ),
    "a parameter": (
        "() * self.sc^ale",
        "self.scale",
        """
        ```python
        self.scale: f32[4]
        ```
        float32 · cpu · 16 B · Parameter · requires grad
        `nets.0.scale`, `nets.1.scale`, `scale`
        """,
    ),
    "a part of an argument": (
        "y.t()^[:, :2]",
        "y.t()[:, :2]",
        """
        ```python
        f32[4,2][:, :2] → f32[4,2]
        ```
        float32 · cpu · 32 B · strides (1, 4) · requires grad
        `nets.0`, `nets.1` · Net · 21 calls
        """,
    ),
    "a name that gets a value": (
        "val^ues, places",
        "values",
        """
        ```python
        values: f32[2]
        ```
        float32 · cpu · 8 B · requires grad
        """,
    ),
    "a name that goes into a call": (
        "cat([^y, y",
        "y",
        """
        ```python
        y: f32[2,4]
        ```
        float32 · cpu · 32 B · requires grad
        """,
    ),
    "a name that is returned": (
        "return ^out, values",
        "out",
        """
        ```python
        out: f32[4,4]
        ```
        float32 · cpu · 64 B · requires grad
        assigned in line 14
        """,
    ),
    "a parameter where it is declared": (
        "forward(self, ^x, mask",
        "x",
        """
        ```python
        x: f32[2,3|5]
          f32[2,3]  # nets.0 call 1, nets.1, Net
          f32[2,5]  # nets.0 call 8
        ```
        float32 · cpu · 24 B to 40 B
        parameter of `forward`
        """,
    ),
    "a parameter where it is used": (
        "self.layer(^x)",
        "x",
        """
        ```python
        x: f32[2,3|5]
        ```
        float32 · cpu · 24 B to 40 B
        parameter of `forward`
        """,
    ),
    "a lambda's": (
        "lambda v: ^v",
        "v",
        """
        ```python
        v: f32[8,5]
        ```
        float32 · cpu · 160 B
        parameter of a lambda
        """,
    ),
    "a call with too many inputs for one line": (
        "F.scaled^_dot",
        "F.scaled_dot_product_attention(h, h, h, attn_mask=everything, dropout_p=0.0)",
        """
        ```python
        scaled_dot_product_attention(dropout_p=0.0)
          h           f32[4,4]
          h           f32[4,4]
          h           f32[4,4]
          everything  bool[4,4]
        → f32[4,4]
        ```
        float32 · cpu · 64 B · requires grad
        Big · 7 calls
        """,
    ),
    "many different calls": (
        "5) ^+ 1",
        "torch.ones(size, 5) + 1",
        """
        ```python
        f32[2,5] + 1 → f32[2,5]
        f32[3,5] + 1 → f32[3,5]
        f32[4,5] + 1 → f32[4,5]
        f32[5,5] + 1 → f32[5,5]
        f32[6,5] + 1 → f32[6,5]
        … 2 more
        ```
        float32 · cpu · 40 B to 160 B
        7 calls
        """,
    ),
    "a function that modules ran": (
        "def for^ward(self, x):",
        "forward",
        """
        ```python
        Big(f32[2,3]) → f32[4,4]  ×7  # Big call 1
        ✗ Big(f32[2,5])  # Big call 8
        RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x5 and 3x4)
        ```
        float32 · cpu · 64 B · requires grad
        `Big` · 40 parameters · 8 calls
        """,
    ),
    "behind wide characters": (
        "sum() ^+ 2",
        "z.sum() + 2",
        """
        ```python
        f32[] + 2 → f32[]
        ```
        float32 · cpu · 4 B
        1 call
        """,
    ),
    "the argument's own call": (
        "@ z.^to",
        "z.to(torch.float64)",
        """
        ```python
        to(z f32[8,5], torch.float64) → f64[8,5]
        ```
        float64 · cpu · 320 B
        1 call
        """,
    ),
}

NOTHING = [
    "y.masked^_fill",  # never ran
    "retu^rn out",
    "mask=^None",
    "for ^net in",
    "range^(2, 9)",
    "dou^ble(z)",
    "ran^ge(2",
    "^class Big",
    "pass^",
]


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The program above, after its run."""
    return show(PROGRAM, tmp_path_factory.mktemp("hover") / "program.py")


@pytest.mark.parametrize(("place", "marked", "expected"), STORIES.values(), ids=STORIES.keys())
def test_a_story_is_told(shown: Shown, place: str, marked: str, expected: str) -> None:
    story = shown.hover(place)
    assert story is not None
    assert story.markdown.replace("  \n", "\n") + "\n" == plain(expected)
    line = shown.document.lines[story.start[0]].encode("utf-16-le")
    assert story.start[0] == story.end[0]
    assert line[2 * story.start[1] : 2 * story.end[1]].decode("utf-16-le") == marked


@pytest.mark.parametrize("place", NOTHING)
def test_of_other_things_nothing_is_told(shown: Shown, place: str) -> None:
    assert shown.hover(place) is None


def test_a_hint_tells_the_story_of_its_statement(shown: Shown) -> None:
    hints = {shown.document.lines[hint.line].strip(): hint for hint in shown.hints()}
    hint = hints["values, places = y.max(dim=1)"]
    story = statement_story(shown.view(), shown.store, hint.statement)
    assert story == (
        "```python\nvalues: f32[2]\nplaces: i64[2]\n```\nfloat32, int64 · cpu · some require grad"
    )
    hint = hints["y = self.layer(x).relu() * self.scale"]
    story = statement_story(shown.view(), shown.store, hint.statement)
    value, _, failure = story.partition("\n\n---\n\n")
    assert "f32[2,4] * scale f32[4] → f32[2,4]" in value
    assert "✗ Linear(x f32[2,5])\nRuntimeError: mat1" in failure


def test_functions_that_modules_ran_have_a_lens(shown: Shown) -> None:
    lenses = [
        (shown.document.lines[lens.line].strip(), lens.text)
        for lens in code_lenses(shown.view(), shown.store)
    ]
    assert lenses == [
        (
            "def forward(self, x, mask=None):",
            "22 calls · 3 modules · 20 parameters each · (f32[2,3|5]) → (f32[4,4], f32[2])",
        ),
        ("def forward(self, x, mask=None):", "pin a call"),
        ("def forward(self, x):", "8 calls · 40 parameters · (f32[2,3|5]) → f32[4,4]"),
        ("def forward(self, x):", "pin a call"),
    ]


def test_nothing_is_told_of_a_statement_that_was_changed(tmp_path: Path) -> None:
    shown = show("x = torch.ones(2)\ny = x + (\n    x * 2\n)\n", tmp_path / "program.py")
    assert shown.hover("x ^* 2") is not None
    shown.document.replace((2, 5), (2, 5), " ")
    assert shown.hover("y = x  ^+ (") is None
    assert shown.hover("    x ^* 2") is None
    shown.document.replace((0, 0), (0, 0), "# above\n")
    assert shown.hover("x = torch.o^nes") is not None


def test_that_shapes_have_settled_is_told(tmp_path: Path) -> None:
    shown = show("x = torch.ones(2)\n", tmp_path / "program.py")
    entry = Coverage("settled", "not looked at since pass 3", 64)
    shown.store.apply("process", Update(coverage=(entry,)))
    story = shown.hover("torch.^ones")
    assert story is not None
    assert story.markdown.endswith("1 call  \nRecording pauses: not looked at since pass 3")


def test_lenses_of_other_modules(tmp_path: Path) -> None:
    shown = show(
        """
        class Direct(nn.Module):
            def forward(self, x):
                return x * 2
        class Inner(nn.Module):
            def forward(self, x, mask=None, scale=1.0):
                return x * 2 if mask is None else x.masked_fill(mask, 0)
        class Odd(nn.Module):
            def __init__(self):
                super().__init__()
                self.forward = self.other
            def other(self, x):
                return x.sum()
        def hook(module, given, result):
            return result + 1
        class Unused(nn.Module):
            def forward(self, x):
                return x + 1
        Direct().forward(torch.ones(2))
        both = nn.Sequential(Inner(), Inner())
        both(torch.ones(2, 3))
        Inner()(torch.ones(4, 3), torch.ones(4, 3, dtype=torch.bool), scale=2.0)
        odd = Odd()
        odd.register_forward_hook(hook)
        odd(torch.ones(2))
        """,
        tmp_path / "program.py",
    )
    lenses = {
        shown.document.lines[lens.line].strip(): lens.text
        for lens in code_lenses(shown.view(), shown.store)
        if not lens.command
    }
    assert lenses == {
        "def forward(self, x):": "called directly · (f32[2])",
        "def forward(self, x, mask=None, scale=1.0):": (
            "3 calls · 3 modules · (x: f32[2|4,3], mask: bool[4,3]) → f32[2|4,3]"
        ),
        "def other(self, x):": "1 call · (f32[2]) → f32[]",
    }


def test_of_functions_with_one_name_each_has_its_own_lens(tmp_path: Path) -> None:
    shown = show(
        """
        def make(size):
            if size == 1:
                class Net(nn.Module):
                    def forward(self, x):
                        return x * 1
            else:
                class Net(nn.Module):
                    def forward(self, x):
                        return x.sum()
            return Net()
        make(1)(torch.ones(2))
        make(2)(torch.ones(3))
        make(2)(torch.ones(3))
        """,
        tmp_path / "program.py",
    )
    lenses = [(lens.line, lens.text) for lens in code_lenses(shown.view(), shown.store)]
    assert lenses == [
        (4, "1 call · (f32[2]) → f32[2]"),
        (8, "2 calls · (f32[3]) → f32[]"),
        (8, "pin a call"),
    ]


def test_above_what_is_compiled_there_is_the_reason_why_nothing_is_shown(tmp_path: Path) -> None:
    shown = show(
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 4)
            def forward(self, x):
                return self.layer(x)
        net = torch.compile(Net(), backend="eager")
        x = torch.ones(2, 3)
        net(x)
        """,
        tmp_path / "program.py",
    )
    lenses = [(lens.line, lens.text) for lens in code_lenses(shown.view(), shown.store)]
    assert lenses == [
        (
            5,
            "not recorded: torch.compile region (to see inside, run with TORCH_COMPILE_DISABLE=1)",
        )
    ]
