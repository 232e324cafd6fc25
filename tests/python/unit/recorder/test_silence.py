"""Looking at a tensor is no operation: printing, logging and asking for its shape add no record."""

from __future__ import annotations

import pytest

from tests.support.recorder import LEVELS, Harmless, Traced, names_of, outline, unindented

LOOKING = {
    "print": "print(x, file=out)",
    "print of a container": "print([x, {'x': x}], file=out)",
    "repr": "repr(x)",
    "str": "str(x)",
    "formatted": "f'{x}'",
    "formatted with a conversion": "f'{x!r:>40}'",
    "formatted number": "f'{number:.3f}'",
    "format method": "'{}'.format(x)",
    "percent": "'%s' % x",
    "print of a parameter": "print(nn.Parameter(x), file=out)",
    "logging": "logger.warning('%s', x)",
    "pretty printing": "import pprint; pprint.pformat([x] * 3)",
    "assertion on the shape": "assert x.shape == (2, 3) and x.dim() == 2 and len(x) == 2",
    "in a list, by identity": "x in [x]",
    "as a key": "{x: 1}[x]",
    "metadata": """
x.shape, x.size(), x.size(0), x.dtype, x.device, x.layout, x.ndim, x.requires_grad, x.is_leaf
x.stride(), x.storage_offset(), x.numel(), x.nelement(), x.element_size(), x.itemsize, x.nbytes
x.is_cuda, x.is_sparse, x.is_quantized, x.is_meta, x.grad_fn, x.grad, x.output_nr
x.is_contiguous(), x.is_floating_point(), x.is_complex(), x.is_signed(), x.is_inference()
x.data_ptr(), x.untyped_storage(), x.get_device(), x.is_shared(), x.is_pinned(), x.is_conj()
x.dim(), x.ndimension(), len(x), hash(x), x.is_neg(), torch.is_tensor(x), torch.numel(x)
torch.is_floating_point(x), torch.is_complex(x), x.dim_order(), x.is_same_size(x), x._version
""",
    "a tensor of another class": "x.as_subclass(nn.Parameter)",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("statement", LOOKING.values(), ids=LOOKING.keys())
def test_looking_adds_no_record(statement: str, level: str, harmless: Harmless) -> None:
    body = "".join(f"        {line}\n" for line in statement.strip().splitlines())
    trace = harmless(
        "import io\n"
        "out = io.StringIO()\n"
        "logger = logging.getLogger('quiet')\n"
        "logger.handlers, logger.propagate = [logging.StreamHandler(out)], False\n"
        "given, number = torch.ones(2, 3), torch.tensor(0.5)\n"
        "class Looking(nn.Module):\n"
        "    def forward(self, x):\n"
        f"{body}"
        "        return x\n"
        "def main():\n"
        "    return Looking()(given), out.getvalue()\n",
        level=level,
    )
    assert [name for name in names_of(trace) if name != "as_subclass"] == []
    assert [op for op in trace.ops if op.level == "aten" and op.parent is None] == []


def test_a_condition_on_values_is_an_operation_of_the_program(traced: Traced) -> None:
    trace = traced(
        """
        x = torch.ones(3)

        def main():
            assert (x > 0).all()
        """
    )
    assert outline(trace) == unindented(
        """
        > (f32[3]) -> bool[3]
        all() (bool[3]) -> bool[]
        __bool__() (bool[]) -> True
        """
    )


def test_printing_a_model_whose_own_text_computes_adds_only_what_it_computes(
    harmless: Harmless,
) -> None:
    trace = harmless(
        """
        class Telling(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3))

            def extra_repr(self):
                return f"sum={self.weight.sum().item()}"

            def forward(self, x):
                return x * self.weight

        net = Telling()

        def main():
            net(torch.ones(3))
            return str(net)
        """
    )
    assert outline(trace) == unindented(
        """
        ones(3) () -> f32[3]
        root: Telling(f32[3]) -> f32[3]
          * (f32[3], f32[3]) -> f32[3]
        sum() (f32[3]) -> f32[]
        item() (f32[]) -> float
        """
    )
    assert trace.modules[0].detail == "sum=3.0"
