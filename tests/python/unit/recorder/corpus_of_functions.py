"""Functions and classes of every form, as programs, and the calls that each makes."""

from tests.support.torches import TORCH

CHECKPOINT = "checkpoint(double, x, use_reentrant=False) => empty f32[0] inside ×2"
"""What torch up to 2.8 makes to keep the arguments of a checkpoint in."""

EXAMPLES = {
    "function and return": """
        def double(t):
            return t * 2
        z = double(x) + double(t=y)
        ----
        t * 2 => Tensor.mul f32[2,3] ×2
        double(x) + double(t=y) => Tensor.add f32[2,3]
    """,
    "defaults are evaluated where they stand": """
        def shift(t, by=b.sum() * 2):
            return t + by
        z = shift(x)
        ----
        b.sum() => Tensor.sum f32[]
        b.sum() * 2 => Tensor.mul f32[]
        t + by => Tensor.add f32[2,3]
    """,
    "nested functions and closures": """
        def scaler(factor):
            scale = torch.tensor(factor)
            def apply(t):
                return t * scale
            return apply
        z = scaler(2.0)(x) + scaler(3.0)(y)
        ----
        torch.tensor(factor) => tensor f32[] ×2
        t * scale => Tensor.mul f32[2,3] ×2
        scaler(2.0)(x) + scaler(3.0)(y) => Tensor.add f32[2,3]
    """,
    "recursion": """
        def halve(t, n):
            return t if n == 0 else halve(t / 2, n - 1)
        z = halve(x, 3)
        ----
        t / 2 => Tensor.div f32[2,3] ×3
    """,
    "decorator": """
        def doubled(function):
            def wrapper(*args):
                return function(*args) * 2
            return wrapper
        @doubled
        def shift(t):
            return t + 1
        z = shift(x)
        ----
        t + 1 => Tensor.add f32[2,3]
        function(*args) * 2 => Tensor.mul f32[2,3]
    """,
    "a decorator that computes": """
        def keep(value):
            return lambda function: function
        @keep(x.sum() * 2)
        def shift(t):
            return t + 1
        z = shift(x)
        ----
        x.sum() => Tensor.sum f32[]
        x.sum() * 2 => Tensor.mul f32[]
        t + 1 => Tensor.add f32[2,3]
    """,
    "decorators of torch": """
        @torch.no_grad()
        def shift(t):
            return t + 1
        z = shift(x)
        @torch.inference_mode()
        def twice(t):
            return t * 2
        z = twice(x)
        ----
        t + 1 => Tensor.add f32[2,3]
        t * 2 => Tensor.mul f32[2,3]
    """,
    "generator": """
        def halves(t):
            while True:
                t = t / 2
                seen = yield t
                if seen is not None:
                    t = t + seen
        steps = halves(x)
        z = next(steps) + next(steps)
        z = steps.send(y)
        steps.close()
        ----
        t / 2 => Tensor.div f32[2,3] ×3
        next(steps) + next(steps) => Tensor.add f32[2,3]
        t + seen => Tensor.add f32[2,3]
    """,
    "yield from": """
        def parts(t):
            yield t[0] * 2
        def all_parts():
            yield from parts(x)
            yield from (t.exp() for t in parts(y))
        z = torch.stack([*all_parts()])
        ----
        t[0] => Tensor.__getitem__ f32[3] ×2
        t[0] * 2 => Tensor.mul f32[3] ×2
        t.exp() => Tensor.exp f32[3]
        torch.stack([*all_parts()]) => stack f32[2,3]
    """,
    "async functions": """
        import asyncio
        async def double(t):
            await asyncio.sleep(0)
            return t * 2
        async def both():
            p, q = await asyncio.gather(double(x), double(y))
            r = (await double(p)) + q
            return r
        z = asyncio.run(both())
        ----
        t * 2 => Tensor.mul f32[2,3] ×3
        (await double(p)) + q => Tensor.add f32[2,3]
    """,
    "async generators, with and comprehension": """
        import asyncio, contextlib
        async def parts():
            for t in (x, y):
                yield t * 2
        @contextlib.asynccontextmanager
        async def scaled(t):
            yield t / 2
        async def main():
            async for t in parts():
                z = t.sum()
            async with scaled(x) as half:
                z = half + z
            return [t.exp() async for t in parts()]
        z = asyncio.run(main())
        ----
        t * 2 => Tensor.mul f32[2,3] ×4
        t.sum() => Tensor.sum f32[] ×2
        t / 2 => Tensor.div f32[2,3]
        half + z => Tensor.add f32[2,3]
        t.exp() => Tensor.exp f32[2,3] ×2
    """,
    "class body": """
        class Constants:
            base = x * 2
            table = [base_row.sum() for base_row in (x, y)]
            def shift(self, t):
                return t + self.base
        z = Constants().shift(y)
        ----
        x * 2 => Tensor.mul f32[2,3]
        base_row.sum() => Tensor.sum f32[] ×2
        t + self.base => Tensor.add f32[2,3]
    """,
    "property, static and class methods": """
        class Box:
            scale = 3
            def __init__(self, t):
                self.t = t
            @property
            def doubled(self):
                return self.t * 2
            @staticmethod
            def neg(t):
                return t.neg()
            @classmethod
            def scaled(cls, t):
                return t * cls.scale
        z = Box(x).doubled + Box.neg(x) + Box.scaled(y)
        ----
        self.t * 2 => Tensor.mul f32[2,3]
        t.neg() => Tensor.neg f32[2,3]
        Box(x).doubled + Box.neg(x) => Tensor.add f32[2,3]
        t * cls.scale => Tensor.mul f32[2,3]
        Box(x).doubled + Box.neg(x) + Box.scaled(y) => Tensor.add f32[2,3]
    """,
    "operators of the program's own classes": """
        class Wrapped:
            def __init__(self, t):
                self.t = t
            def __add__(self, other):
                return Wrapped(self.t + other.t)
            def __getitem__(self, key):
                return self.t[key]
            def __call__(self, t):
                return self.t @ t
        z = (Wrapped(x) + Wrapped(y))[0]
        z = Wrapped(x)(w)
        ----
        self.t + other.t => Tensor.add f32[2,3]
        self.t[key] => Tensor.__getitem__ f32[3]
        self.t @ t => Tensor.matmul f32[2,4]
    """,
    "context managers of the program's own": """
        import contextlib
        class Add:
            def __enter__(self):
                return x + 1
            def __exit__(self, *error):
                self.last = y + 1
        @contextlib.contextmanager
        def scaled(t):
            yield t * 2
        with Add() as p, scaled(p) as q:
            z = p + q
        ----
        x + 1 => Tensor.add f32[2,3]
        t * 2 => Tensor.mul f32[2,3]
        p + q => Tensor.add f32[2,3]
        y + 1 => Tensor.add f32[2,3]
    """,
    "functools": """
        import functools
        z = functools.reduce(torch.add, [x, y, x])
        double = functools.partial(torch.mul, other=2)
        z = double(x)
        @functools.lru_cache
        def once():
            return x.exp()
        z = once() + once()
        ----
        functools.reduce(torch.add, [x, y, x]) => add f32[2,3] inside ×2
        double(x) => mul f32[2,3]
        x.exp() => Tensor.exp f32[2,3]
        once() + once() => Tensor.add f32[2,3]
    """,
    "copies": """
        import copy
        z = copy.copy(x)
        z = copy.deepcopy({"x": x})
        ----
        copy.py => empty f32[0] inside
        copy.py => Tensor.__deepcopy__ f32[2,3]
    """,
    "module": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(b.clone())
                self.linear = nn.Linear(3, 3)
            def forward(self, t):
                h = self.linear(t)
                return F.gelu(h) * self.scale
        block = Block()
        z = block(x)
        z = block.forward(y)
        ----
        b.clone() => Tensor.clone f32[3]
        nn.Linear(3, 3) => empty f32[3,3] inside
        nn.Linear(3, 3) => empty f32[3] inside
        nn.Linear(3, 3) => nn.init.kaiming_uniform_ f32[3,3] inside
        nn.Linear(3, 3) => nn.init.uniform_ f32[3] inside
        self.linear(t) => nn.functional.linear f32[2,3] inside ×2
        F.gelu(h) => nn.functional.gelu f32[2,3] ×2
        F.gelu(h) * self.scale => Tensor.mul f32[2,3] ×2
    """,
    "functions of torch.func": """
        z = torch.vmap(lambda t: t * 2)(x)
        g = torch.func.grad(lambda t: (t ** 2).sum())(x)
        ----
        t * 2 => Tensor.mul f32[3]
        torch.func.grad(lambda t: (t ** 2).sum())(x) => Tensor.requires_grad_ f32[2,3] inside
        t ** 2 => Tensor.__pow__ f32[2,3]
        (t ** 2).sum() => Tensor.sum f32[]
        torch.func.grad(lambda t: (t ** 2).sum())(x) => autograd.grad f32[2,3] inside
    """,
    "autograd functions of the program's own": """
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, t):
                ctx.save_for_backward(t)
                return t * 2
            @staticmethod
            def backward(ctx, g):
                t, = ctx.saved_tensors
                return g * 2 + t
        x.requires_grad_()
        z = Double.apply(x)
        z.sum().backward()
        g = torch.autograd.grad(Double.apply(x).sum(), x)
        ----
        x.requires_grad_() => Tensor.requires_grad_ f32[2,3]
        t * 2 => Tensor.mul f32[2,3] ×2
        z.sum() => Tensor.sum f32[]
        z.sum().backward() => Tensor.backward no tensor
        g * 2 => Tensor.mul f32[2,3] ×2
        g * 2 + t => Tensor.add f32[2,3] ×2
        Double.apply(x).sum() => Tensor.sum f32[]
        torch.autograd.grad(Double.apply(x).sum(), x) => autograd.grad f32[2,3]
    """,
    "checkpoint": """
        from torch.utils.checkpoint import checkpoint
        def double(t):
            return t.exp()
        x.requires_grad_()
        z = checkpoint(double, x, use_reentrant=False)
        z.sum().backward()
        ----
        x.requires_grad_() => Tensor.requires_grad_ f32[2,3]
        {more}t.exp() => Tensor.exp f32[2,3]
        z.sum() => Tensor.sum f32[]
        z.sum().backward() => Tensor.backward no tensor
        t.exp() => Tensor.exp no tensor
    """.format(more=f"{CHECKPOINT}\n        " if TORCH <= (2, 8) else ""),
    "hooks on tensors": """
        x.requires_grad_()
        z = x * 2
        z.register_hook(lambda grad: grad / 2)
        z.sum().backward()
        ----
        x.requires_grad_() => Tensor.requires_grad_ f32[2,3]
        x * 2 => Tensor.mul f32[2,3]
        z.register_hook(lambda grad: grad / 2) => Tensor.register_hook no tensor
        z.sum() => Tensor.sum f32[]
        z.sum().backward() => Tensor.backward no tensor
        grad / 2 => Tensor.div f32[2,3]
    """,
    "hooks of the program's own": """
        linear = nn.Linear(3, 4)
        linear.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        linear.register_forward_hook(lambda module, args, output: output + 1)
        z = linear(x)
        ----
        nn.Linear(3, 4) => empty f32[4,3] inside
        nn.Linear(3, 4) => empty f32[4] inside
        nn.Linear(3, 4) => nn.init.kaiming_uniform_ f32[4,3] inside
        nn.Linear(3, 4) => nn.init.uniform_ f32[4] inside
        args[0] * 2 => Tensor.mul f32[2,3]
        linear(x) => nn.functional.linear f32[2,4] inside
        output + 1 => Tensor.add f32[2,4]
    """,
    "tensor subclass": """
        class Named(torch.Tensor):
            pass
        z = x.as_subclass(Named) + y
        q = z.relu()
        ----
        x.as_subclass(Named) + y => Tensor.add f32[2,3]
        z.relu() => Tensor.relu f32[2,3]
    """,
    "module-level code and imports": """
        import math
        z = x * math.pi
        if __name__ == "__main__":
            z = z + y
        ----
        x * math.pi => Tensor.mul f32[2,3]
        z + y => Tensor.add f32[2,3]
    """,
}
