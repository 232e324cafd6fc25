"""Assignments whose value is not what the calls on their line suggest.

Each program has a ``main`` that is run with ``x`` and ``y`` f32[2,3], ``b`` f32[3], ``w`` f32[3,4].
"""

TRAPS = {
    "data that is another": """
        def main():
            p = nn.Parameter(torch.ones(2, 2))
            p.data = torch.ones(3, 3)
            return p @ p
    """,
    "a module that takes another dtype": """
        def main():
            layer = nn.Linear(2, 2)
            weight = layer.weight
            layer.half()
            return weight + 1
    """,
    "sum adds in steps": """
        def main():
            total = sum([b, x])
            return total
    """,
    "reduce multiplies in steps": """
        import functools
        def main():
            product = functools.reduce(torch.matmul, [x, w, w.T])
            return product
    """,
    "map makes a list of results": """
        def main():
            totals = list(map(torch.sum, [x, y]))
            first = totals[0]
            return first
    """,
    "map over modules": """
        layer = nn.Linear(3, 4)
        def main():
            results = list(map(layer, [x, y]))
            first = results[0]
            return first
    """,
    "a key function": """
        def main():
            largest = max([b, b * 2], key=torch.sum)
            ordered = sorted([x, y], key=torch.mean)
            z = largest + ordered[0]
            return z
    """,
    "any and all": """
        def main():
            some = any(map(torch.is_nonzero, b))
            z = x * some
            return z
    """,
    "a default that is computed but not taken": """
        def main():
            table = {"k": b}
            z = table.setdefault("k", x * 2)
            q = table.get("k", x.sum())
            return z + q
    """,
    "a name with two sources": """
        def pick(flag):
            z = x
            if flag:
                z = b
            q = z * 2
            return q
        def main():
            pick(True)
            pick(False)
            pick(True)
            z = b
    """,
    "an assignment that does not happen": """
        def fail(t):
            raise ValueError
        def main():
            z = b
            try:
                z = fail(x)
            except ValueError:
                pass
            q = z * 2
            return q
    """,
    "an assignment whose operator raises": """
        def main():
            z = b
            for other in (y, w):
                try:
                    z = x * other
                except RuntimeError:
                    pass
                q = z + 1
            return q
    """,
    "a name that a loop binds": """
        def main():
            z = x
            for z in (b, w):
                q = z * 2
            return q
    """,
    "a comprehension's name is another": """
        def main():
            z = x
            rows = [z * 2 for z in (b, b)]
            q = z + 1
            return q
    """,
    "a walrus in a comprehension": """
        def main():
            last = x
            rows = [last := t * 2 for t in (w, b)]
            q = last + 1
            return q
    """,
    "a closure that changes a name": """
        def main():
            z = x
            def change():
                nonlocal z
                z = b * 2
                return z
            q = change()
            r = z * 2
            return r
    """,
    "a global that changes": """
        def change():
            global x
            x = b * 2
        def main():
            z = x
            change()
            z = x
            q = z + 1
            return q
    """,
    "an alias that grows in place": """
        def main():
            z = x.clone()
            alias = z
            alias.unsqueeze_(0)
            q = z * 2
            alias = z.squeeze_(0)
            return q
    """,
    "a name deleted and bound again": """
        def main():
            z = x * 2
            del z
            z = identity(b)
            q = z + 1
            return q
        def identity(t):
            return t
    """,
    "names swapped": """
        def main():
            p, q = x, b
            p, q = q, p
            r = p + q
            return r
    """,
    "recursion with shapes that change": """
        def halve(t):
            if t.shape[0] < 2:
                return t
            half = t[: t.shape[0] // 2]
            rest = halve(half)
            z = rest * 2
            return z
        def main():
            z = halve(torch.ones(8, 2))
            return z
    """,
    "a generator that is sent values": """
        def steps():
            t = x
            while True:
                t = yield t * 2
                u = t + 1
        def main():
            stream = steps()
            z = next(stream)
            z = stream.send(b)
            z = stream.send(w)
            return z
    """,
    "two tasks that take turns": """
        import asyncio
        async def work(t, times):
            for _ in range(times):
                t = await stretch(t)
                u = t * 2
            return u
        async def stretch(t):
            await asyncio.sleep(0)
            return torch.cat([t, t])
        async def both():
            p, q = await asyncio.gather(work(b, 3), work(x, 2))
            return p
        def main():
            z = asyncio.run(both())
            return z
    """,
    "a mode that changes results": """
        from torch.overrides import TorchFunctionMode
        class Summed(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                return result.sum() if isinstance(result, torch.Tensor) else result
        def main():
            with Summed():
                z = x.relu()
            q = z + 1
            return q
    """,
    "a mode that looks at results": """
        from torch.overrides import TorchFunctionMode
        class Check(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                if isinstance(result, torch.Tensor):
                    assert not torch.isnan(result).any()
                return result
        def main():
            with Check():
                z = x.relu()
                q = F.relu(z)
            return q
    """,
    "a subclass that changes results": """
        class Summed(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                result = super().__torch_function__(func, types, args, kwargs or {})
                is_tensor = isinstance(result, torch.Tensor)
                return result.as_subclass(torch.Tensor)[..., None] if is_tensor else result
        def main():
            z = torch.neg(torch.ones(2).as_subclass(Summed))
            q = z + 1
            return q
    """,
    "vmap shows its function less": """
        layer = nn.Linear(3, 4)
        def main():
            z = torch.vmap(torch.sum)(x)
            q = torch.vmap(layer)(x)
            r = torch.vmap(lambda t: t * 2)(x)
            return r
    """,
    "a gradient is not the function's value": """
        def main():
            z = torch.func.grad(torch.sum)(x)
            q = torch.func.vjp(torch.sum, x)[1](torch.tensor(1.0))[0]
            return q
    """,
    "a hook that changes a module's output": """
        layer = nn.Linear(3, 4)
        layer.register_forward_hook(lambda module, args, output: output.sum())
        def main():
            z = layer(x)
            return z
    """,
    "a module that calls others": """
        def main():
            stack = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4))
            z = stack(x)
            q = nn.ModuleList([nn.Linear(4, 6)])[0](z)
            return q
    """,
    "a module that hides its call": """
        class Total(nn.Linear):
            def __call__(self, t):
                return super().__call__(t).sum()
        layer = Total(3, 4)
        def main():
            z = layer(x)
            return z
    """,
    "functions of torch in several steps": """
        def main():
            norm = nn.utils.clip_grad_norm_([nn.Parameter(x)], 1.0)
            vector = nn.utils.parameters_to_vector([x, w])
            line = torch.nn.functional.normalize(x, dim=0)
            drawn = nn.init.orthogonal_(torch.empty(3, 5))
            z = vector.sum() + norm
            return z
    """,
    "a tensor unpacked": """
        def main():
            p, q = x
            first, *rest = x.T
            (r, s), t = x, y
            z = p + r
            return z
    """,
    "containers of tensors": """
        def main():
            pair = x, b
            z, q = pair
            p = q, r = pair[0], pair[1]
            parts = [x]
            pair = parts, b
            parts.append(y)
            s = z + q
            return s
    """,
    "a list that grows later": """
        def main():
            parts = []
            for t in (x, y):
                parts.append(t * 2)
            z = torch.cat(parts)
            return z
    """,
    "a dict that is changed later": """
        def main():
            table = {"first": x}
            z = table["first"] * 2
            table["first"] = b
            q = table["first"] * 2
            return z + q
    """,
    "a forward whose decorator changes its result": """
        def summed(function):
            def wrapper(*args):
                return function(*args).sum()
            return wrapper
        class Layer(nn.Linear):
            @summed
            def forward(self, t):
                z = F.linear(t, self.weight)
                q = z
                return q
        layer = Layer(3, 4)
        def main():
            z = layer(x)
            return z
    """,
    "a forward called again by another": """
        class Base(nn.Linear):
            def forward(self, t):
                z = super().forward(t)
                return z
        class Layer(Base):
            def forward(self, t):
                z = super().forward(t)
                z = keep(z).sum()
                return z
        def keep(t):
            return t
        layer = Layer(3, 4)
        def main():
            z = layer(x)
            q = Layer(3, 2)(x) + z
            return q
    """,
    "a plain function that makes no call": """
        def choose(t):
            return b
        def main():
            for flag in (False, True, False):
                z = x
                if flag:
                    z = choose(z)
                q = z * 2
            return q
    """,
    "a name rebound to what it is": """
        def main():
            z = x * 2
            z = z + y if z is None else z
            q = z + 1
            z = z if q is None else keep(b)
            r = z + 1
            return r
        def keep(t):
            return t
    """,
    "tensors that come and go at the same address": """
        def grow(t):
            return torch.cat([t, t])
        def shrink(t):
            return t[:1]
        def main():
            z = torch.ones(1)
            for step in range(6):
                z = grow(z)
                if step % 3 == 2:
                    z = shrink(z)
                q = z * 2
            return q
    """,
    "an item of a module's results": """
        layer = nn.LSTM(3, 4)
        def main():
            z = layer(x)[0]
            q = layer(x)[1][0]
            r = x.max(dim=1)[0]
            s = x.max(dim=1).indices
            return s
    """,
    "values that are not tensors": """
        def main():
            n = x.sum().item()
            flag = bool((x > 9).any())
            size = x.T.shape
            listed = (x * 2).tolist()
            array = x.numpy()
            z = x * n
            return z
    """,
    "the same call many times with other shapes": """
        def grow(t):
            return torch.cat([t, b])
        def main():
            z = b
            for step in range(40):
                z = grow(z)
                q = z * 2
                r = q.sum() + z[:1]
            return z
    """,
    "an operator that returns another tensor": """
        class Wrapped:
            def __init__(self, t):
                self.t = t
            def __matmul__(self, other):
                return (self.t @ other).sum()
            def __getattr__(self, name):
                return getattr(self.t, name)
        def main():
            box = Wrapped(x)
            z = box @ w
            q = box.T
            return q
    """,
    "a property that computes": """
        class Box:
            @property
            def total(self):
                product = x @ w
                return product.sum()
        def main():
            z = Box().total
            q = z + 1
            return q
    """,
    "a function with the name of an operation": """
        def relu(t):
            return torch.relu(t).sum()
        def main():
            z = relu(x)
            q = z * x
            return q
    """,
    "a caller that is looked at from within a call": """
        def main():
            z = x
            for step in range(3):
                z = double(z)
                q = z
            return q
        def double(t):
            u = torch.cat([t, t])
            t = u
            return t
    """,
    "a call that does not come back, looked at from within": """
        def fail(t):
            t = torch.cat([t, t])
            raise ValueError
        class Layer(nn.Module):
            def forward(self, t):
                z = t
                for other in (y, x, b):
                    try:
                        z = fail(other)
                    except ValueError:
                        q = z * 2
                    z = other
                return q
        layer = Layer()
        def main():
            z = layer(b)
            return z
    """,
    "a variable whose going away computes": """
        class Going:
            def __del__(self):
                self.t = torch.cat([b, b, b])
        def main():
            z = Going()
            z = x
            q = z + 1
            return q
    """,
    "a parameter that is stored to": """
        class Layer(nn.Module):
            def forward(self, t, again):
                if again:
                    t = grow(t)
                q = grow(b)
                r = grow(t)
                return r
        def grow(t):
            t = torch.cat([t, t])
            u = t * 2
            return u
        layer = Layer()
        def main():
            z = layer(x, True)
            z = layer(w, False)
            return z
    """,
    "a hook that is called twice for one call": """
        results = [torch.ones(50), torch.ones(70)]
        def grow(module, args, output):
            p = output
            for step in range(2):
                q = torch.cat([p, p[:1]])
                p = q
            return results.pop()
        layer = nn.ReLU()
        layer.register_forward_hook(grow)
        layer.register_forward_hook(grow)
        def main():
            results[:] = torch.ones(50), torch.ones(70)
            z = layer(b)
            return z
    """,
    "a copy whose both sides change": """
        class Layer(nn.Module):
            def forward(self, t, again):
                p = t
                q = p
                if again:
                    p = b
                    q = p
                r = torch.cat([t, t])
                return q
        layer = Layer()
        def main():
            z = layer(x, True)
            z = layer(w, False)
            return z
    """,
    "a copy between two loads": """
        class Layer(nn.Module):
            def forward(self, p, q):
                for step in range(3):
                    p, q = q, p
                    r = p + 1
                    p = q = p
                    q = grow(q)
                return p
        def grow(t):
            return torch.cat([t, t])
        layer = Layer()
        def main():
            z = layer(x, b)
            return z
    """,
    "items of a tuple that gets shorter": """
        class Layer(nn.Module):
            def forward(self, rest, joined):
                while rest:
                    last = rest[-1]
                    rest = rest[:-1]
                    if last is None:
                        last = joined
                    joined = torch.cat([joined, last])
                return joined
        layer = Layer()
        def main():
            z = layer((b, w[0], None, torch.ones(2), None), b)
            return z
    """,
    "items of a list that changes": """
        def main():
            parts = [x, b]
            z = parts[0]
            first, second = parts
            parts[:] = w, w
            q = z.sum() + first.sum() + second.sum()
            return q
    """,
    "a name given twice at once": """
        def main():
            pair = x, b
            _, _ = pair
            z = _ * 2
            _, _ = z.max(dim=0)
            z = _ + 1
            _ = _ = w
            z = z.sum() + _.sum()
            return z
    """,
    "results that are unpacked into keys": """
        class Layer(nn.Module):
            def forward(self, t):
                return {"first": t, "second": t * 2}
        layer = Layer()
        def main():
            p, q = layer(x)
            first, *rest = layer(x)
            z = x + 1
            return z
    """,
    "results whose items are asked for by number": """
        class Last(tuple):
            def __getitem__(self, index):
                return super().__getitem__(-1 - index)
        class Layer(nn.Module):
            def forward(self, t):
                return Last((t, w))
        class Keyed(nn.Module):
            def forward(self, t):
                return {1: t, 0: b}
        layer, keyed = Layer(), Keyed()
        def main():
            p = layer(x)[0]
            q = keyed(x)[0]
            last = Last((x, w))
            r = last[0]
            z = p.sum() + q.sum() + r.sum()
            return z
    """,
    "results of another length": """
        def main():
            p = q = r = b
            for t in (x, x.T):
                try:
                    p, q = t.unbind()
                    p, q, r = layer(t)
                except ValueError:
                    pass
                z = p + q
            return z
        class Layer(nn.Module):
            def forward(self, t):
                return t, b, t * 2, w
        layer = Layer()
    """,
    "a forward called twice for one call": """
        def twice(function):
            def wrapper(self, *args):
                function(self, *args)
                return function(self, *args)
            return wrapper
        class Layer(nn.Module):
            @twice
            def forward(self, t):
                p = self.state
                q = p
                self.state = torch.cat([p, p])
                p = keep(q)
                return t
        def keep(t):
            return t
        layer = Layer()
        def main():
            layer.state = b
            z = layer(x)
            z = layer(w)
            return z
    """,
    "a forward called in a loop for one call": """
        def often(function):
            def wrapper(self, *tensors):
                for tensor in tensors:
                    result = function(self, tensor)
                return result
            return wrapper
        class Layer(nn.Module):
            @often
            def forward(self, t):
                p = t
                for step in range(2):
                    q = torch.cat([p, p[:1]])
                    p = q
                return t
        layer = Layer()
        def main():
            z = layer(torch.ones(10), torch.ones(20), torch.ones(30))
            return z
    """,
    "a forward called back for one call": """
        def mapped(function):
            def wrapper(self, *tensors):
                return list(map(function, [self] * len(tensors), tensors))[-1]
            return wrapper
        class Layer(nn.Module):
            @mapped
            def forward(self, t):
                p = t
                for step in range(2):
                    q = torch.cat([p, p[:1]])
                    p = q
                return t
        layer = Layer()
        def main():
            z = layer(torch.ones(10), torch.ones(20), torch.ones(30))
            return z
    """,
    "a forward that is its own hook": """
        class Layer(nn.Module):
            def forward(self, t, output=None):
                p = b
                if output is not None:
                    p = t[0]
                q = torch.cat([p, p])
                p = w
                return None if output is not None else q
        layer = Layer()
        for _ in range(2):
            layer.register_forward_hook(Layer.forward)
        def main():
            z = layer(x)
            return z
    """,
    "a forward that ends in another way": """
        class Layer(nn.Module):
            def forward(self, t, way):
                z = keep(t)
                q = keep(z)
                try:
                    if way == 1:
                        return z
                    if way == 2:
                        z = grow(z)
                        return q
                    return z
                finally:
                    if way == 3:
                        return w
        def keep(t):
            return t
        def grow(t):
            return torch.cat([t, t])
        layer = Layer()
        def main():
            for way in range(4):
                z = layer(x, way)
            return z
    """,
    "a forward whose error a decorator turns into a result": """
        def careful(function):
            def wrapper(self, *args):
                try:
                    return function(self, *args)
                except ValueError:
                    return w
            return wrapper
        class Layer(nn.Module):
            @careful
            def forward(self, t, fails):
                u = t * 2
                z = keep(t)
                if fails:
                    raise ValueError
                return z
        def keep(t):
            return t
        layer = Layer()
        def main():
            z = layer(x, True)
            return z
    """,
    "a forward whose result is handed on": """
        def handing(function):
            def wrapper(self, *args):
                return function(self, *args)
            return wrapper
        def last(function):
            def wrapper(self, *args):
                results = [function(self, each) for each in args]
                return results[-1]
            return wrapper
        class Layer(nn.Module):
            @handing
            @handing
            def forward(self, t):
                u = t * 2
                z = keep(t)
                return z
        class Other(nn.Module):
            @handing
            @last
            @handing
            def forward(self, t):
                u = t * 2
                z = keep(t)
                return z
        def keep(t):
            return t
        layer, other = Layer(), Other()
        def main():
            z = layer(x)
            z = other(x, w, b)
            return z
    """,
    "a forward whose result a hook reshapes": """
        class Layer(nn.Module):
            def forward(self, t):
                z = keep(t)
                return z
        def keep(t):
            return t.clone()
        layer = Layer()
        layer.register_forward_hook(lambda module, args, output: output.unsqueeze_(0) and None)
        plain = Layer()
        def main():
            z = layer(b[:1])
            q = plain(b[:1]).unsqueeze_(0)
            return z
    """,
    "a module made to return something else": """
        class Layer(nn.Module):
            def forward(self, t):
                z = keep(t)
                return z
            def _call_impl(self, *args):
                return super()._call_impl(*args).sum()
        def keep(t):
            return t.clone()
        layer = Layer()
        other = nn.Module()
        other.forward = lambda t: Layer.forward(other, t)[0]
        def main():
            z = layer(x)
            q = other(x)
            return z
    """,
    "a branch that asks what has changed since": """
        class Layer(nn.Module):
            def forward(self, t, mask, items):
                z = t
                if mask is None:
                    z = grow(t)
                    mask = w
                if items:
                    z = grow(z)
                items.append(b)
                kept = grow(z)
                for flag in (True, False):
                    q = t
                    if flag:
                        q = grow(q)
                    r = grow(kept)
                return r
        def grow(t):
            return torch.cat([t, t])
        layer = Layer()
        def main():
            z = layer(x, None, [])
            z = layer(b, x, [1])
            return z
    """,
    "a number that says it is none": """
        class Never(int):
            def __bool__(self):
                return next(answers)
        answers = iter([True, False] * 20)
        class Layer(nn.Module):
            def forward(self, t, number):
                z = t
                if number:
                    z = grow(t)
                q = grow(z)
                if number:
                    z = grow(q)
                q = grow(z)
                return q
        def grow(t):
            return torch.cat([t, t])
        layer = Layer()
        def main():
            z = layer(x, Never(0))
            z = layer(b, Never(1))
            return z
    """,
    "generators that take turns in a forward": """
        class Layer(nn.Module):
            def forward(self, t):
                one, other = self.steps(b), self.steps(t)
                for step in range(3):
                    p = next(one)
                    q = next(other)
                return p
            def steps(self, t):
                while True:
                    u = t
                    t = torch.cat([t, t])
                    yield u
                    u = None
        layer = Layer()
        def main():
            z = layer(x)
            return z
    """,
}
