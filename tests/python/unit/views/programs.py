"""The traces that view tests render, each of a small program."""

from __future__ import annotations

from shapetrace.events.model import Container, Coverage, ErrorInfo, Other
from tests.python.unit.views.builder import FOLDER, Recording, f32, i64

MHA_SOURCE = """\
import torch
from torch import nn


class MHA(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.out = nn.Linear(size, size)

    def split_heads(self, x):
        return x.view(2, 5, self.heads, -1).transpose(1, 2)

    def forward(self, x):
        # größe: jede Zeile behält ihre Spalten
        q = self.split_heads(self.query(x))
        k = self.split_heads(self.key(x))
        größe, scores = q.size(-1), q @ k.transpose(-2, -1)
        scores = torch.softmax(
            2 * scores,
            dim=-1,
        )
        merged = torch.cat([scores @ k, q], dim=-1)
        return self.out(merged[..., :2].reshape(2, 5, 6))
"""

TRAIN_SOURCE = """\
import torch

from mha import MHA

model = MHA(6, 3)
x = torch.randn(2, 5, 6)
optimizer = torch.optim.Adam(model.parameters())
loss = model(x).square().mean()
loss.backward()
optimizer.step()
"""


def attention() -> Recording:
    """Attention: modules, a helper function, two-sided ops, a multi-line statement, library ops."""
    recording = Recording(
        {"mha.py": MHA_SOURCE, "train.py": TRAIN_SOURCE}, argv=("train.py", "--epochs", "1")
    )
    weights = [f32(6, 6, name="query.weight"), f32(6, name="query.bias")]
    forward, split = "MHA.forward", "MHA.split_heads"
    x, flat, heads = f32(2, 5, 6, name="x"), f32(2, 5, 6), f32(2, 3, 5, 2)
    q, k = f32(2, 3, 5, 2, name="q"), f32(2, 3, 5, 2, name="k")
    linear = "torch.nn.functional.linear"
    detail = "in_features=6, out_features=6, bias=True"
    recording.op("torch.randn", "randn(2, 5, 6)", ("<module>", "torch.randn(2, 5, 6)"), [], [flat])
    with recording.module(
        "", "MHA", ("<module>", "model(x)"), [x], [flat], names=["x"], parameters=126
    ):
        for name in ("query", "key"):
            call = f"self.{name}(x)"
            with recording.module(
                name, "Linear", (forward, call), [x], [flat], detail=detail, parameters=42
            ):
                recording.op(
                    linear,
                    "linear({0}, {1}, {2})",
                    (forward, call),
                    [x, *weights],
                    [flat],
                    label="linear",
                    direct=False,
                )
            with recording.function((forward, f"self.split_heads(self.{name}(x))")):
                split_view = "x.view(2, 5, self.heads, -1)"
                recording.op(
                    "torch.Tensor.view",
                    "view({0}, 2, 5, 3, -1)",
                    (split, split_view),
                    [x],
                    [f32(2, 5, 3, 2)],
                    label="view(2, 5, 3, -1)",
                )
                recording.op(
                    "torch.Tensor.transpose",
                    "transpose({0}, 1, 2)",
                    (split, f"{split_view}.transpose(1, 2)"),
                    [f32(2, 5, 3, 2)],
                    [heads],
                    label="transpose(1, 2)",
                )
        recording.op(
            "torch.Tensor.transpose",
            "transpose({0}, -2, -1)",
            (forward, "k.transpose(-2, -1)"),
            [k],
            [f32(2, 3, 2, 5)],
            label="transpose(-2, -1)",
        )
        recording.op(
            "torch.Tensor.__matmul__",
            "{0} @ {1}",
            (forward, "q @ k.transpose(-2, -1)"),
            [q, f32(2, 3, 2, 5)],
            [f32(2, 3, 5, 5)],
            label="@",
        )
        recording.op(
            "torch.Tensor.__rmul__",
            "2 * {0}",
            (forward, "2 * scores"),
            [f32(2, 3, 5, 5, name="scores")],
            [f32(2, 3, 5, 5)],
            label="*",
        )
        recording.op(
            "torch.softmax",
            "softmax({0}, dim=-1)",
            (forward, "torch.softmax(\n            2 * scores,\n            dim=-1,\n        )"),
            [f32(2, 3, 5, 5)],
            [f32(2, 3, 5, 5)],
            label="softmax(dim=-1)",
        )
        recording.op(
            "torch.Tensor.__matmul__",
            "{0} @ {1}",
            (forward, "scores @ k"),
            [f32(2, 3, 5, 5, name="scores"), k],
            [heads],
            label="@",
        )
        recording.op(
            "torch.cat",
            "cat([{0}, {1}], dim=-1)",
            (forward, "torch.cat([scores @ k, q], dim=-1)"),
            [heads, q],
            [f32(2, 3, 5, 4)],
            label="cat(dim=-1)",
        )
        recording.op(
            "torch.Tensor.__getitem__",
            "{0}[..., :2]",
            (forward, "merged[..., :2]"),
            [f32(2, 3, 5, 4, name="merged")],
            [heads],
            label="[..., :2]",
        )
        recording.op(
            "torch.Tensor.reshape",
            "reshape({0}, 2, 5, 6)",
            (forward, "merged[..., :2].reshape(2, 5, 6)"),
            [heads],
            [flat],
            label="reshape(2, 5, 6)",
        )
        call = "self.out(merged[..., :2].reshape(2, 5, 6))"
        with recording.module(
            "out", "Linear", (forward, call), [flat], [flat], detail=detail, parameters=42
        ):
            recording.op(
                linear,
                "linear({0}, {1}, {2})",
                (forward, call),
                [flat, *weights],
                [flat],
                label="linear",
                direct=False,
            )
    loss = "model(x).square()"
    recording.op(
        "torch.Tensor.square",
        "square({0})",
        ("<module>", loss),
        [flat],
        [flat],
        label="square()",
    )
    recording.op(
        "torch.Tensor.mean",
        "mean({0})",
        ("<module>", f"{loss}.mean()"),
        [flat],
        [f32()],
        label="mean()",
    )
    for name in ("mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_"):
        recording.op(
            f"torch.Tensor.{name}",
            f"{name}({{0}})",
            ("<module>", "optimizer.step()"),
            [f32(6, 6)],
            [f32(6, 6)],
            label=name,
            direct=False,
        )
    return recording


GPT_SOURCE = """\
class Block(nn.Module):
    def forward(self, hidden, mask=None, use_cache=False):
        hidden = hidden + self.attn(self.norm(hidden), mask=mask)
        return hidden, self.cache


class GPT(nn.Module):
    def forward(self, tokens):
        hidden = self.embed(tokens)
        for block in self.blocks:
            hidden, cache = block(hidden, mask=None, use_cache=True)
        return Output(logits=self.head(hidden), cache=cache)


model = torch.compile(GPT())
model.generate(tokens)
"""


def generation() -> Recording:
    """A decoder that was called again with other sizes: counts, call numbers, coverage, notes."""
    recording = Recording({"gpt.py": GPT_SOURCE}, argv=("gpt.py",), passes=9)
    recording.coverage += [
        Coverage("torch.compile region", f"{FOLDER}/gpt.py:15", 3),
        Coverage("passes after the 9th", "", 1),
    ]
    for call, count, length in ((1, 1, 7), (2, 8, 1)):
        tokens, hidden = i64(2, length, name="tokens"), f32(2, length, 16, name="hidden")
        cache = Container("tuple", (f32(2, 4, length, 4), f32(2, 4, length, 4)))
        logits = Container(
            "CausalLMOutput",
            (f32(2, length, 100), Container("tuple", (cache,) * 12)),
            ("logits", "cache"),
        )
        with recording.module(
            "",
            "GPT",
            ("<module>", "model.generate(tokens)"),
            [tokens],
            [logits],
            names=["tokens"],
            call=call,
            count=count,
            parameters=402_312,
        ):
            with recording.module(
                "embed",
                "Embedding",
                ("GPT.forward", "self.embed(tokens)"),
                [tokens],
                [hidden],
                detail="100, 16",
                call=call,
                count=count,
                parameters=1_600,
            ):
                pass
            for layer in range(2):
                path = f"blocks.{layer}"
                with recording.module(
                    path,
                    "Block",
                    ("GPT.forward", "block(hidden, mask=None, use_cache=True)"),
                    [hidden, Other("None"), Other("True")],
                    [hidden, cache],
                    names=["hidden", "mask", "use_cache"],
                    result="tuple",
                    call=call,
                    count=count,
                    parameters=3_280,
                ):
                    with recording.module(
                        f"{path}.norm",
                        "LayerNorm",
                        ("Block.forward", "self.norm(hidden)"),
                        [hidden],
                        [hidden],
                        detail="(16,), eps=1e-05, elementwise_affine=True",
                        call=call,
                        count=count,
                        parameters=32,
                    ):
                        recording.op(
                            "torch.nn.functional.layer_norm",
                            "layer_norm({0}, (16,), {1}, {2}, 1e-05)",
                            ("Block.forward", "self.norm(hidden)"),
                            [hidden, f32(16), f32(16)],
                            [hidden],
                            label="layer_norm((16,), 1e-05)",
                            direct=False,
                            count=count,
                        )
                    with recording.module(
                        f"{path}.attn",
                        "OptimizedModule",
                        ("Block.forward", "self.attn(self.norm(hidden), mask=mask)"),
                        [hidden],
                        [hidden],
                        note="compiled: nothing inside was looked at",
                        call=call,
                        count=None,
                    ):
                        pass
                    recording.op(
                        "torch.Tensor.__add__",
                        "{0} + {1}",
                        ("Block.forward", "hidden + self.attn(self.norm(hidden), mask=mask)"),
                        [hidden, f32(2, length, 16)],
                        [hidden],
                        label="+",
                        count=count,
                    )
    return recording


BROKEN_SOURCE = """\
class Head(nn.Module):
    def forward(self, features):
        return features @ self.weight


class Net(nn.Module):
    def forward(self, image):
        return self.head(self.body(image))


Net()(image)
"""

BROKEN_MESSAGE = "mat1 and mat2 shapes cannot be multiplied (2x512 and 256x10)\nsecond line"


def failure() -> Recording:
    """A program that ended in a shape error."""
    error = ErrorInfo("RuntimeError", BROKEN_MESSAGE)
    recording = Recording({"net.py": BROKEN_SOURCE}, argv=("net.py",))
    features = f32(2, 512, name="features")
    with recording.module(
        "", "Net", ("<module>", "Net()(image)"), [f32(2, 3, 8, 8)], [], error=error
    ):
        with recording.module(
            "body", "Flatten", ("Net.forward", "self.body(image)"), [f32(2, 3, 8, 8)], [features]
        ):
            pass
        with recording.module(
            "head",
            "Head",
            ("Net.forward", "self.head(self.body(image))"),
            [features],
            [],
            error=error,
        ):
            recording.op(
                "torch.Tensor.__matmul__",
                "{0} @ {1}",
                ("Head.forward", "features @ self.weight"),
                [features, f32(256, 10, name="head.weight")],
                [],
                label="@",
                error=error,
            )
    return recording


def kernels() -> Recording:
    """A linear layer at level aten."""
    recording = Recording({"train.py": TRAIN_SOURCE})
    with recording.module(
        "", "Linear", ("<module>", "model(x)"), [f32(2, 6)], [f32(2, 6)], detail="6, 6"
    ):
        inputs = [f32(2, 6), f32(6, 6, name="weight"), f32(6, name="bias")]
        linear = recording.op(
            "torch.nn.functional.linear",
            "linear({0}, {1}, {2})",
            ("<module>", "model(x)"),
            inputs,
            [f32(2, 6)],
            label="linear",
            direct=False,
        )
        recording.op(
            "aten.t", "t({0})", ("<module>", "model(x)"), [f32(6, 6)], [f32(6, 6)], parent=linear
        )
        recording.op(
            "aten.addmm",
            "addmm({0}, {1}, {2})",
            ("<module>", "model(x)"),
            [f32(6), f32(2, 6), f32(6, 6)],
            [f32(2, 6)],
            parent=linear,
        )
    return recording


STATEMENTS_SOURCE = """\
@register(torch.zeros(1))
def f(x, scale=torch.ones(2)):
\tif (
\t\tx.sum() > 0
\t):
\t\treturn x * 2
\tfor part in x.unbind():
\t\tpass
\twith context(
\t    part.neg(),
\t):
\t\tbig = [
\t\t\tpart.abs(),
\t\t\t1,
\t\t\t2,
\t\t\t3,
\t\t\t4,
\t\t\t5,
\t\t\t6,
\t\t\t7,
\t\t\t8,
\t\t\t9,
\t\t\t10,
\t\t\t11,
\t\t\t12,
\t\t\t13,
\t\t\t14,
\t\t\t15,
\t\t\t16,
\t\t\t17,
\t\t\t18,
\t\t\t19,
\t\t\t20,
\t\t]
\treturn x + f(x - 1) + f(x - 3)


東京 = "東京"; y = f(x @ x)
"""


def statements() -> Recording:
    """Heads of compound statements, decorators, tabs, long and non-ASCII lines, repeated calls."""
    recording = Recording({"statements.py": STATEMENTS_SOURCE}, argv=(), passes=0)
    x = f32(3, 3, name="x")

    def op(name: str, form: str, function: str, expression: str) -> None:
        inputs = [x] * form.count("{")
        place = (function, expression)
        label = form.split()[1] if form.startswith("{") else form.replace("{0}", "")
        recording.op(f"torch.Tensor.{name}", form, place, inputs, [f32(3, 3)], label=label)

    op("zeros", "zeros(1)", "<module>", "torch.zeros(1)")
    op("ones", "ones(2)", "<module>", "torch.ones(2)")
    op("matmul", "{0} @ {1}", "<module>", "x @ x")
    with recording.function(("<module>", "f(x @ x)")):
        op("sum", "sum({0})", "f", "x.sum()")
        op("unbind", "unbind({0})", "f", "x.unbind()")
        op("neg", "neg({0})", "f", "part.neg()")
        op("abs", "abs({0})", "f", "part.abs()")
        for amount in (1, 3):
            op("sub", f"{{0}} - {amount}", "f", f"x - {amount}")
            with recording.function(("f", f"f(x - {amount})")):
                op("mul", "{0} * 2", "f", "x * 2")
            if amount == 1:
                op("add", "{0} + {1}", "f", "x + f(x - 1)")
        op("add", "{0} + {1}", "f", "x + f(x - 1) + f(x - 3)")
    return recording
