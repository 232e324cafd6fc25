"""Programs with the hints that they are to have."""

HINTS = {
    "assignments of every kind": """
        x = torch.ones(2, 3) «f32[2,3]»
        y: torch.Tensor = x.t() «f32[3,2]»
        y += 1 «f32[3,2]»
        y @= torch.ones(2, 4) «f32[3,4]»
        a = b = x.sum(1) «f32[2]»
        x[:, 0] = b * 2 «f32[2]»
        x[0] += 1 «f32[3]»
        number = 3
        text = str(x.shape)
    """,
    "lists and dictionaries that nothing can have changed": """
        net = nn.Linear(3, 4)
        def step(batch): «batch {x: f32[2,3], y: i64[2]}»
            return net(batch["x"]) + batch["y"].sum() «f32[2,4]»
        def call(**inputs): «inputs {input: f32[2,3]}»
            return net(**inputs) «f32[2,4]»
        def take(batch):
            y = batch.pop("y") «i64[2]»
            return net(batch["x"]) + y.sum() «f32[2,4]»
        def grow(parts):
            parts.append(torch.ones(3))
            return torch.cat(parts[:1]) «f32[3]»
        def rename(batch):
            other = batch
            other["z"] = torch.ones(1) «f32[1]»
            return net(batch["x"]) «f32[2,4]»
        def swap(batch):
            first, other = batch, 3
            batch["z"] = torch.ones(1) «f32[1]»
            return net(other and first["x"]) «f32[2,4]»
        def fail(batch):
            del batch["y"]
            raise KeyError
        def attempt(batch):
            try:
                fail(batch)
            except KeyError:
                pass
            return net(batch["x"]) «f32[2,4]»
        def build(x): «x f32[2,3]»
            parts = [x, x * 2] «[f32[2,3], f32[2,3]]»
            named = {"a": parts[0], "b": x.sum()} «{a: f32[2,3], b: f32[]}»
            return torch.cat(parts) + named["b"] «f32[4,3]»
        batch = {"x": torch.ones(2, 3), "y": torch.ones(2).long()} «{x: f32[2,3], y: i64[2]}»
        total = batch["x"].sum() «f32[]»
        for function in (step, take, rename, attempt, swap):
            function(dict(batch))
        call(input=torch.ones(2, 3))
        grow([torch.ones(3)])
        build(torch.ones(2, 3))
        for each in [batch, batch]: «each {x: f32[2,3], y: i64[2]}»
            x = each["x"] + 1 «f32[2,3]»
    """,
    "an item of what a call returns": """
        from typing import Any, NamedTuple
        class Output(NamedTuple):
            logits: torch.Tensor
            items: Any = ()
        class Net(nn.Module):
            def forward(self, x): «x f32[2,3]»
                return Output(x * 2)
        class Pair(nn.Module):
            def forward(self, x): «x f32[2,3]»
                return {"out": x * 2, "values": x.sum()}, x.t() «(…, f32[3,2])»
        def main(x): «x f32[2,3]»
            top = x.max(1).values «f32[2]»
            logits = Net()(x).logits «f32[2,3]»
            other = Net()(x).items
            second = Pair()(x)[1] «f32[3,2]»
            Pair()(x)[1] «f32[3,2]»
            x.sum().item()
            x.sum().shape
            return Net()(x).logits «f32[2,3]»
        main(torch.ones(2, 3))
    """,
    "the variables of a program that a function stores to": """
        x = torch.ones(2, 3) «f32[2,3]»
        y = x
        def change():
            global y
            y = x.sum() «f32[]»
        change()
        z = y «f32[]»
        w = (lambda: x.t())() «f32[3,2]»
        x.sum() «f32[]»
    """,
    "attributes and items": """
        class Box: pass
        box = Box()
        held = {}
        box.inside = torch.ones(2) «f32[2]»
        held["key"] = torch.zeros(3, dtype=torch.int64) «i64[3]»
        box.inside, box.more = torch.ones(4, 2).chunk(2) «box.inside,box.more f32[2,2]»
    """,
    "several targets": """
        x = torch.ones(6, 4) «f32[6,4]»
        q, k, v = x.chunk(3) «q,k,v f32[2,4]»
        values, places = x.max(dim=1) «values f32[6], places i64[6]»
        a, (b, *c), d = x.sum(), x.chunk(3), 5 «a f32[], b f32[2,4], c [f32[2,4], f32[2,4]]»
        first, *rest = x.split([1, 2, 3]) «first f32[1,4], rest [f32[2,4], f32[3,4]]»
        p, n = x * 2, 7 «p f32[6,4]»
        [m] = x.chunk(1) «f32[6,4]»
    """,
    "unpacking a tensor tells of its rows only": """
        def rows(x): «x f32[2,3]»
            a, b = x «a,b f32[3]»
            c = a + b «f32[3]»
            return c
        rows(torch.ones(2, 3))
    """,
    "returns": """
        def one(x): «x f32[2,3]»
            return x * 2 «f32[2,3]»
        def two(x): «x f32[2,3]»
            return x * 2, x.sum() «(f32[2,3], f32[])»
        def some(x): «x f32[2,3]»
            return x * 2, len(x), None «(f32[2,3], …, …)»
        def lone(x): «x f32[2,3]»
            return x.sum(), «(f32[],)»
        def nothing(x): «x f32[2,3]»
            x * 2 «f32[2,3]»
            return
        for function in (one, two, some, lone, nothing):
            function(torch.ones(2, 3))
    """,
    "expressions": """
        x = torch.ones(2, 3) «f32[2,3]»
        x.add_(1) «f32[2,3]»
        x.numel()
        x.shape
        print(end="")
        torch.manual_seed(0)
        x
        x > 1 «bool[2,3]»
    """,
    "statements over several lines": """
        x = torch.cat(
            [torch.ones(2, 3), torch.ones(2, 3)],
            dim=0,
        ) «f32[4,3]»
        y = (
            x
            .relu()
            .sum(0)  # a comment
        ) «f32[3]»
        z = x + \\
            y «f32[4,3]»
        torch.add(
            x,
            y,
        ) «f32[4,3]»
    """,
    "comments and blanks at the end": """
        x = torch.ones(2)  # (2,) «f32[2]»
        y = x * 2   # a # b «f32[2]»
        z = "# no comment", x * 3 «('# no comment', f32[2])»
        w = x * 4  \t «f32[2]»
    """,
    "several statements on a line": """
        x = torch.ones(2); y = x.sum() «x f32[2]; y f32[]»
        n = 1; z = x * 2 «f32[2]»
        if True: w = x * 3 «f32[2]»
    """,
    "heads of loops": """
        x = torch.ones(2, 3) «f32[2,3]»
        def walk(x): «x f32[2,3]»
            for row in x: «row f32[3]»
                row * 2 «f32[3]»
            for index, row in enumerate(x): «row f32[3]»
                row * 2 «f32[3]»
            for a, b in zip(x, x): «a,b f32[3]»
                a + b «f32[3]»
            while x.sum() < 100:
                x = x + 100 «f32[2,3]»
        walk(x)
    """,
    "conditions": """
        x = torch.ones(2, 3) «f32[2,3]»
        if x.sum() > 0:
            pass
        elif x.mean() > 0:
            pass
        assert x.sum() > 0
        y = x if x.sum() > 0 else x * 2 «f32[2,3]»
        z = x * 2 if x.sum() < 0 else x * 3 «f32[2,3]»
        w = bool(x.sum())
    """,
    "names given in expressions": """
        x = torch.ones(2, 3) «f32[2,3]»
        if (total := x.sum()) > 0: «total f32[]»
            pass
        y = (n := x * 2).sum() + 1 «y f32[], n f32[2,3]»
        while (m := x.sum()) < 0: «m f32[]»
            pass
    """,
    "with": """
        x = torch.ones(2, 3) «f32[2,3]»
        with torch.no_grad():
            y = x * 2 «f32[2,3]»
        with contextlib.nullcontext(x * 3) as z: «z f32[2,3]»
            z.sum() «f32[]»
    """,
    "comprehensions, lambdas and generators": """
        def main(x): «x f32[2,3]»
            halves = [part * 2 for part in x.chunk(2)] «[f32[1,3], f32[1,3]]»
            double = lambda y: y * 2
            doubled = double(x) «f32[2,3]»
            return sum(part.sum() for part in x.chunk(2))
        main(torch.ones(2, 3))
        def make(x): «x f32[2,3]»
            for part in x.chunk(2): «part f32[1,3]»
                yield part * 2 «f32[1,3]»
        for made in make(torch.ones(2, 3)): «made f32[1,3]»
            made * 2 «f32[1,3]»
    """,
    "parameters": """
        def simple(x, n, y=None): «x f32[2]»
            return x * n «f32[2]»
        simple(torch.ones(2), 3)
        def all_kinds(a, /, b, *rest, c, **more): «a,b,c f32[2]»
            return a + b + c «f32[2]»
        all_kinds(torch.ones(2), torch.ones(2), c=torch.ones(2))
        def lines(
            x, «f32[2]»
            mask=None, «bool[2]»
            *,
            n: int = 3, y=None,
        ):
            return x.masked_fill(mask, n) «f32[2]»
        lines(torch.ones(2), torch.ones(2, dtype=torch.bool))
        @torch.no_grad()
        def decorated(x): «x f32[2]»
            return x * 2 «f32[2]»
        decorated(torch.ones(2))
        def short(x): return x * 2 «x f32[2]; f32[2]»
        short(torch.ones(2))
    """,
    "calls that differ": """
        def f(x): «x f32[2|8,16]»
            y = x * 2 «f32[2|8,16]»
            return y.sum(0) «f32[16]»
        f(torch.ones(2, 16))
        f(torch.ones(8, 16))
        def g(x): «x f32[2] | i64[2,2]»
            return x * 2 «f32[2] | i64[2,2]»
        g(torch.ones(2))
        g(torch.ones(2, 2, dtype=torch.int64))
        def grow(n):
            return torch.ones(n, 3) * 2 «f32[1..40,3]»
        for n in range(1, 41):
            grow(n)
    """,
    "modules": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 4)
                self.scale = nn.Parameter(torch.ones(4))
            def forward(self, x): «x f32[2,3]»
                x = self.layer(x) «f32[2,4]»
                x = x * self.scale «f32[2,4]»
                return x «f32[2,4]»
        net = Net()
        out = net(torch.ones(2, 3)) «f32[2,4]»
        both = nn.Sequential(nn.Linear(3, 4), nn.ReLU())(torch.ones(2, 3)) «f32[2,4]»
    """,
    "a name that is returned": """
        class Pair(nn.Module):
            def forward(self, x): «x f32[2,3]»
                y = x.sum(1) «f32[2]»
                with torch.no_grad():
                    z = y * 2 «f32[2]»
                return x, y, z «(f32[2,3], f32[2], f32[2])»
        Pair()(torch.ones(2, 3)) «(f32[2,3], f32[2], f32[2])»
        class Hooked(nn.Module):
            def forward(self, x): «x f32[2,3]»
                y = x * 2 «f32[2,3]»
                return y
        hooked = Hooked()
        hooked.register_forward_hook(lambda module, given, result: result.sum())
        hooked(torch.ones(2, 3)) «f32[]»
        class Branches(nn.Module):
            def forward(self, x, n): «x f32[2,3]»
                if n:
                    x = x.sum(0) «f32[3]»
                return x
        Branches()(torch.ones(2, 3), 1) «f32[3]»
        Branches()(torch.ones(2, 3), 0) «f32[2,3]»
    """,
    "other devices and kinds": """
        x = torch.ones(2, device="meta") «f32[2]@meta»
        y = torch.eye(3).to_sparse() «f32[3,3]»
        z = torch.ones(2, 3, dtype=torch.bfloat16) «bf16[2,3]»
        s = torch.tensor(3) «i64[]»
    """,
    "wide characters before the end": """
        größe = torch.ones(2); "😀"; y = größe * 2  # 😀 «größe f32[2]; y f32[2]»
        α, β = torch.ones(4).chunk(2) «α,β f32[2]»
    """,
    "what is too long is shortened": """
        def many(hidden_states, attention_mask, position_ids, cache): «hidden_states f32[2,3], …»
            return hidden_states, attention_mask * 2 «(…, f32[2,1,1,3])»
        many(torch.ones(2, 3), torch.ones(2, 1, 1, 3), torch.ones(2, 3), torch.ones(1))
        x = torch.ones([1, 2] * 10) «f32[1,2,1,2,1,2,1,2,1,…,2,1,2,1,2,1,2,1,2]»
        a_very_long_name_for_it, b = x.chunk(2, 1) «a_very_long_name_for_… f32[1,1,1,2,…,2,1,2]»
    """,
}

AFTER_NAMES = {
    "after each name": """
        x «f32[6,4]» = torch.ones(6, 4)
        q «f32[2,4]», k «f32[2,4]», v «f32[2,4]» = x.chunk(3)
        a «f32[6]» = b «f32[6]» = x.sum(1)
        x[0] = b[:4] «f32[4]»
        def f(x «f32[2]», n, *, y: torch.Tensor «f32[2]» = None):
            for row «f32[]» in x:
                row + 1 «f32[]»
            return x + y «f32[2]»
        f(torch.ones(2), 1, y=torch.ones(2))
        größe «f32[2]» = torch.ones(2); z «f32[2]» = größe * 2
    """,
}

ERRORS = {
    "a shape error and all lines that it passed": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(3, 4)
                self.second = nn.Linear(5, 6)
            def forward(self, x): «x f32[2,3]»
                x = self.first(x) «f32[2,4]»
                return self.second(x) «✗ mat1 and mat2 shapes … (2x4 and 5x6)»
        Net()(torch.ones(2, 3)) «✗ mat1 and mat2 shapes … (2x4 and 5x6)»
    """,
    "an error beside values": """
        def attempt(x, y): «x f32[2,3], y f32[3,2] | f32[2,3]»
            try:
                return x @ y «f32[2,2] ✗ mat1 and mat2 … (2x3 and 2x3)»
            except RuntimeError:
                return x * 2 «f32[2,3]»
        attempt(torch.ones(2, 3), torch.ones(3, 2))
        attempt(torch.ones(2, 3), torch.ones(2, 3))
    """,
    "other errors": """
        def attempt(function):
            try:
                function()
            except (RuntimeError, IndexError):
                pass
        x = torch.ones(2, 3) «f32[2,3]»
        attempt(lambda: nn.Embedding(3, 4)(torch.tensor([7]))) «✗ index out of range in self»
        try:
            x + torch.ones(4) «✗ The size of tensor a (3) must match the …»
        except RuntimeError:
            pass
        try:
            x[5] «✗ index 5 is out of bounds for dimension 0…»
        except IndexError:
            pass
    """,
    "what a program does on purpose is no error": """
        class Stops(nn.Module):
            def forward(self, x): «x f32[2]»
                y = x * 2 «f32[2]»
                raise SystemExit(0)
        try:
            Stops()(torch.ones(2))
        except SystemExit:
            pass
    """,
}
