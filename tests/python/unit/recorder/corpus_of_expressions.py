"""Expressions of every form, as programs, and the calls that each makes."""

EXAMPLES = {
    "chained calls": """
        z = x.relu().sum(dim=0).exp()
        ----
        x.relu() => Tensor.relu f32[2,3]
        x.relu().sum(dim=0) => Tensor.sum f32[3]
        x.relu().sum(dim=0).exp() => Tensor.exp f32[3]
    """,
    "a chain over several lines: each call starts at its method": """
        z = (
            x
            .relu()
            .sum(
                dim=0,
            )
            .exp()
        )
        ----
        relu() => Tensor.relu f32[2,3]
        sum( dim=0, ) => Tensor.sum f32[3]
        exp() => Tensor.exp f32[3]
    """,
    "a chain that continues behind a bracket": """
        z = x.view(
            3, 2
        ).relu()
        ----
        x.view( 3, 2 ) => Tensor.view f32[3,2]
        relu() => Tensor.relu f32[3,2]
    """,
    "a call over several lines": """
        z = torch.cat(
            [
                x,
                y.neg(),
            ],
            dim=1,
        )
        ----
        y.neg() => Tensor.neg f32[2,3]
        torch.cat( [ x, y.neg(), ], dim=1, ) => cat f32[2,6]
    """,
    "an operator over several lines": """
        z = (
            x
            + y
            * 2
        )
        ----
        y * 2 => Tensor.mul f32[2,3]
        x + y * 2 => Tensor.add f32[2,3]
    """,
    "several statements on one line": """
        p = x + y; q = p * 2; r = q - p
        ----
        x + y => Tensor.add f32[2,3]
        p * 2 => Tensor.mul f32[2,3]
        q - p => Tensor.sub f32[2,3]
    """,
    "several operators in one expression": """
        z = x * 2 + y / 3 - x ** 2 // 4 % 5
        ----
        x * 2 => Tensor.mul f32[2,3]
        y / 3 => Tensor.div f32[2,3]
        x * 2 + y / 3 => Tensor.add f32[2,3]
        x ** 2 => Tensor.__pow__ f32[2,3]
        x ** 2 // 4 => Tensor.__floordiv__ f32[2,3]
        x ** 2 // 4 % 5 => Tensor.remainder f32[2,3]
        x * 2 + y / 3 - x ** 2 // 4 % 5 => Tensor.sub f32[2,3]
    """,
    "unary operators": """
        z = -x + abs(y)
        n = ~(x > 0)
        ----
        -x => Tensor.neg f32[2,3]
        abs(y) => Tensor.abs f32[2,3]
        -x + abs(y) => Tensor.add f32[2,3]
        x > 0 => Tensor.gt bool[2,3]
        ~(x > 0) => Tensor.__invert__ bool[2,3]
    """,
    "reflected operators": """
        z = 1 - x
        q = 2 / x
        r = 3 + x
        s = 2 ** x
        ----
        1 - x => Tensor.__rsub__ f32[2,3]
        2 / x => Tensor.__rtruediv__ f32[2,3]
        3 + x => Tensor.add f32[2,3]
        2 ** x => Tensor.__rpow__ f32[2,3]
    """,
    "bit and shift operators": """
        i = x.int()
        z = i << 1 & 3 | 4 ^ i
        ----
        x.int() => Tensor.int int32[2,3]
        i << 1 => Tensor.__lshift__ int32[2,3]
        i << 1 & 3 => Tensor.__and__ int32[2,3]
        4 ^ i => Tensor.bitwise_xor int32[2,3]
        i << 1 & 3 | 4 ^ i => Tensor.__or__ int32[2,3]
    """,
    "matrix product": """
        z = x @ w
        z = x.T @ x @ w
        ----
        x @ w => Tensor.matmul f32[2,4]
        x.T => Tensor.T f32[3,2]
        x.T @ x => Tensor.matmul f32[3,3]
        x.T @ x @ w => Tensor.matmul f32[3,4]
    """,
    "nested calls": """
        z = torch.exp(torch.neg(torch.abs(x)))
        ----
        torch.abs(x) => abs f32[2,3]
        torch.neg(torch.abs(x)) => neg f32[2,3]
        torch.exp(torch.neg(torch.abs(x))) => exp f32[2,3]
    """,
    "keyword arguments": """
        z = torch.sum(input=x, dim=0, keepdim=True)
        q = x.std(dim=1, unbiased=False)
        r = torch.clamp(x, max=y)
        ----
        torch.sum(input=x, dim=0, keepdim=True) => sum f32[1,3]
        x.std(dim=1, unbiased=False) => Tensor.std f32[2]
        torch.clamp(x, max=y) => clamp f32[2,3]
    """,
    "star arguments and unpacking": """
        pair = (x, y)
        z = torch.stack([*pair, x], **{"dim": 1})
        q = torch.add(*pair)
        r = torch.cat(tensors=(*pair,), dim=0)
        ----
        torch.stack([*pair, x], **{"dim": 1}) => stack f32[2,3,3]
        torch.add(*pair) => add f32[2,3]
        torch.cat(tensors=(*pair,), dim=0) => cat f32[4,3]
    """,
    "indices and slices": """
        z = x[0]
        z = x[:, 1:]
        z = x[..., None, :2]
        z = x[x > 0]
        z = x[[0, 1], torch.tensor([2, 0])]
        ----
        x[0] => Tensor.__getitem__ f32[3]
        x[:, 1:] => Tensor.__getitem__ f32[2,2]
        x[..., None, :2] => Tensor.__getitem__ f32[2,1,2]
        x > 0 => Tensor.gt bool[2,3]
        x[x > 0] => Tensor.__getitem__ f32[2]
        torch.tensor([2, 0]) => tensor i64[2]
        x[[0, 1], torch.tensor([2, 0])] => Tensor.__getitem__ f32[2]
    """,
    "several subscripts in a row": """
        z = x[0][1:][None]
        ----
        x[0] => Tensor.__getitem__ f32[3]
        x[0][1:] => Tensor.__getitem__ f32[2]
        x[0][1:][None] => Tensor.__getitem__ f32[1,2]
    """,
    "the conversions that Python asks for": """
        z = [1, 2, 3][x.argmax() % 3]
        n = round(float(x.sum())) + len(range(b.argmax()))
        c = complex(x[0, 0]) and x[0, 0] in x
        d = {x: 1}[x]
        for p, q in zip(x, y):
            z = p @ q
        a, *rest = reversed(x)
        ----
        x.argmax() => Tensor.argmax i64[]
        x.argmax() % 3 => Tensor.remainder i64[]
        [1, 2, 3][x.argmax() % 3] => Tensor.__index__ no tensor
        x.sum() => Tensor.sum f32[]
        float(x.sum()) => Tensor.__float__ no tensor
        b.argmax() => Tensor.argmax i64[]
        range(b.argmax()) => Tensor.__index__ no tensor inside
        x[0, 0] => Tensor.__getitem__ f32[]
        complex(x[0, 0]) => Tensor.__complex__ no tensor
        x[0, 0] => Tensor.__getitem__ f32[]
        x[0, 0] in x => Tensor.__contains__ no tensor
        zip(x, y) => Tensor.unbind f32[3] f32[3] inside ×2
        p @ q => Tensor.matmul f32[] ×2
        reversed(x) => Tensor.__reversed__ f32[2,3]
        a, *rest => Tensor.unbind f32[3] f32[3] inside
    """,
    "getters of tensors": """
        z = x.T
        z = w.mT.T.data
        z = x.real
        q = torch.complex(x, y)
        z = q.imag @ q.real.H
        ----
        x.T => Tensor.T f32[3,2]
        w.mT => Tensor.mT f32[4,3]
        w.mT.T => Tensor.T f32[3,4]
        w.mT.T.data => Tensor.data f32[3,4]
        x.real => Tensor.real f32[2,3]
        torch.complex(x, y) => complex complex64[2,3]
        q.imag => Tensor.imag f32[2,3]
        q.real => Tensor.real f32[2,3]
        q.real.H => Tensor.H f32[3,2]
        q.imag @ q.real.H => Tensor.matmul f32[2,2]
    """,
    "what is no operation": """
        n = x.size(0) + x.shape[1] + x.dim() + x.ndim + x.numel() + len(x)
        d = (x.dtype, x.device, x.requires_grad, x.is_contiguous(), x.stride(), x.grad)
        s = repr(x) + str(x) + f"{x}"
        t = isinstance(x, torch.Tensor) and torch.is_tensor(x) and x.is_floating_point()
        ----
    """,
    "numbers out of tensors": """
        n = x.sum().item()
        l = x.tolist()
        f = float(x[0, 0]) + int(x.max())
        t = bool((x > 9).any())
        ----
        x.sum() => Tensor.sum f32[]
        x.sum().item() => Tensor.item no tensor
        x.tolist() => Tensor.tolist no tensor
        x[0, 0] => Tensor.__getitem__ f32[]
        float(x[0, 0]) => Tensor.__float__ no tensor
        x.max() => Tensor.max f32[]
        int(x.max()) => Tensor.__int__ no tensor
        x > 9 => Tensor.gt bool[2,3]
        (x > 9).any() => Tensor.any bool[]
        line 4 => Tensor.__bool__ no tensor
    """,
    "f-string": """
        s = f"sum {x.sum():.3f} mean {float(x.mean())} and {x.shape}"
        s = f"{(x + y)[0, 0].item()!r:>20}"
        ----
        x.sum() => Tensor.sum f32[]
        x.mean() => Tensor.mean f32[]
        float(x.mean()) => Tensor.__float__ no tensor
        x + y => Tensor.add f32[2,3]
        (x + y)[0, 0] => Tensor.__getitem__ f32[]
        (x + y)[0, 0].item() => Tensor.item no tensor
    """,
    "conditional expression": """
        z = x.relu() if x.sum() > 1e9 else x.neg()
        ----
        x.sum() => Tensor.sum f32[]
        x.sum() > 1e9 => Tensor.gt bool[]
        line 1 => Tensor.__bool__ no tensor
        x.neg() => Tensor.neg f32[2,3]
    """,
    "boolean operators": """
        t = (x > 9).any() or (x < 9).all() and not (x == 0).all()
        ----
        x > 9 => Tensor.gt bool[2,3]
        (x > 9).any() => Tensor.any bool[]
        line 1 => Tensor.__bool__ no tensor
        x < 9 => Tensor.lt bool[2,3]
        (x < 9).all() => Tensor.all bool[]
        line 1 => Tensor.__bool__ no tensor
        x == 0 => Tensor.__eq__ bool[2,3]
        (x == 0).all() => Tensor.all bool[]
        line 1 => Tensor.__bool__ no tensor
    """,
    "chained comparison": """
        t = -9 < x.sum() < 9
        ----
        x.sum() => Tensor.sum f32[]
        -9 < x.sum() < 9 => Tensor.gt bool[]
        line 1 => Tensor.__bool__ no tensor
        -9 < x.sum() < 9 => Tensor.lt bool[]
    """,
    "walrus": """
        if (z := x.sum()) < (n := x.numel() * 9):
            q = z * n
        r = [h for c in (x, y) if (h := c.sum(dim=0)).ndim == 1]
        ----
        x.sum() => Tensor.sum f32[]
        (z := x.sum()) < (n := x.numel() * 9) => Tensor.lt bool[]
        line 1 => Tensor.__bool__ no tensor
        z * n => Tensor.mul f32[]
        c.sum(dim=0) => Tensor.sum f32[3] ×2
    """,
    "list comprehension": """
        z = [row.exp() for row in (x, y)]
        z = [a * c for a in (x, y) for c in (1, 2) if (a > -9).any()]
        ----
        row.exp() => Tensor.exp f32[2,3] ×2
        a > -9 => Tensor.gt bool[2,3] ×4
        (a > -9).any() => Tensor.any bool[] ×4
        line 2 => Tensor.__bool__ no tensor ×4
        a * c => Tensor.mul f32[2,3] ×4
    """,
    "set and dict comprehension": """
        z = {name: t.sum() for name, t in {"x": x, "y": y}.items()}
        q = {int(t.argmax()) * 0 for t in (x, y)}
        ----
        t.sum() => Tensor.sum f32[] ×2
        t.argmax() => Tensor.argmax i64[] ×2
        int(t.argmax()) => Tensor.__int__ no tensor ×2
    """,
    "generator expression": """
        z = torch.stack(list(t * 2 for t in (x, y)))
        q = sum(t.sum() for t in (x, y))
        ----
        t * 2 => Tensor.mul f32[2,3] ×2
        torch.stack(list(t * 2 for t in (x, y))) => stack f32[2,2,3]
        t.sum() => Tensor.sum f32[] ×2
        sum(t.sum() for t in (x, y)) => Tensor.add f32[] inside
        sum(t.sum() for t in (x, y)) => Tensor.add f32[] inside
    """,
    "lambda": """
        double = lambda t: t * 2
        z = double(x) + (lambda t, u=y: t - u)(x)
        ----
        t * 2 => Tensor.mul f32[2,3]
        t - u => Tensor.sub f32[2,3]
        double(x) + (lambda t, u=y: t - u)(x) => Tensor.add f32[2,3]
    """,
    "builtins that call back": """
        z = list(map(torch.relu, [x, y]))
        q = sum([x, y, x])
        r = max(x.sum(), y.sum() + 9)
        s = sorted([x[0, 0], x[0, 1]], key=float)
        ----
        list(map(torch.relu, [x, y])) => relu f32[2,3] inside ×2
        sum([x, y, x]) => Tensor.add f32[2,3] inside
        sum([x, y, x]) => Tensor.add f32[2,3] inside ×2
        x.sum() => Tensor.sum f32[]
        y.sum() => Tensor.sum f32[]
        y.sum() + 9 => Tensor.add f32[]
        max(x.sum(), y.sum() + 9) => Tensor.gt bool[] inside
        line 3 => Tensor.__bool__ no tensor inside
        x[0, 0] => Tensor.__getitem__ f32[]
        x[0, 1] => Tensor.__getitem__ f32[]
        sorted([x[0, 0], x[0, 1]], key=float) => Tensor.__float__ no tensor inside ×2
    """,
    "functions that Python hands over": """
        z = F.relu(x)
        z = F.max_pool2d(x[None], 1)
        z = F.pad(x, (1, 1))
        z = F.softmax(x, dim=-1).norm()
        z = torch.einsum("ij,jk->ik", x, w)
        q = torch.meshgrid(b, b, indexing="ij")
        r = torch.unique(x.sign())
        z = x.split(1) + torch.split(y, 1)
        ----
        F.relu(x) => nn.functional.relu f32[2,3]
        x[None] => Tensor.__getitem__ f32[1,2,3]
        F.max_pool2d(x[None], 1) => nn.functional.max_pool2d f32[1,2,3]
        F.pad(x, (1, 1)) => nn.functional.pad f32[2,5]
        F.softmax(x, dim=-1) => nn.functional.softmax f32[2,3]
        F.softmax(x, dim=-1).norm() => Tensor.norm f32[]
        torch.einsum("ij,jk->ik", x, w) => functional.einsum f32[2,4]
        torch.meshgrid(b, b, indexing="ij") => functional.meshgrid f32[3,3] f32[3,3]
        x.sign() => Tensor.sign f32[2,3]
        torch.unique(x.sign()) => functional.unique f32[2]
        x.split(1) => Tensor.split f32[1,3] f32[1,3]
        torch.split(y, 1) => functional.split f32[1,3] f32[1,3]
    """,
    "functions that choose between variants of themselves": """
        pool = F.max_pool1d
        v, i = pool(x, 2, return_indices=True)
        r, counts = torch.unique(x, return_counts=True)
        ----
        pool(x, 2, return_indices=True) => nn.functional.max_pool1d_with_indices f32[2,1] i64[2,1]
        torch.unique(x, return_counts=True) => functional.unique f32[6] i64[6]
    """,
    "functions that torch composes out of others": """
        z = torch.nn.utils.parameters_to_vector([x, y])
        q = nn.init.xavier_uniform_(x.clone())
        r = F.relu(nn.Linear(3, 4)(x))
        ----
        torch.nn.utils.parameters_to_vector([x, y]) => Tensor.view f32[6] inside ×2
        torch.nn.utils.parameters_to_vector([x, y]) => cat f32[12] inside
        x.clone() => Tensor.clone f32[2,3]
        nn.init.xavier_uniform_(x.clone()) => Tensor.uniform_ f32[2,3] inside
        nn.Linear(3, 4) => empty f32[4,3] inside
        nn.Linear(3, 4) => empty f32[4] inside
        nn.Linear(3, 4) => nn.init.kaiming_uniform_ f32[4,3] inside
        nn.Linear(3, 4) => nn.init.uniform_ f32[4] inside
        nn.Linear(3, 4)(x) => nn.functional.linear f32[2,4] inside
        F.relu(nn.Linear(3, 4)(x)) => nn.functional.relu f32[2,4]
    """,
    "in place": """
        x.add_(1).mul_(y)
        x.relu_()
        F.relu(x, inplace=True)
        x.unsqueeze_(0)
        ----
        x.add_(1) => Tensor.add_ f32[2,3]
        x.add_(1).mul_(y) => Tensor.mul_ f32[2,3]
        x.relu_() => Tensor.relu_ f32[2,3]
        F.relu(x, inplace=True) => nn.functional.relu f32[2,3]
        x.unsqueeze_(0) => Tensor.unsqueeze_ f32[1,2,3]
    """,
    "out arguments": """
        z = torch.empty(0)
        torch.add(x, y, out=z)
        pair = torch.empty(3), torch.empty(3, dtype=torch.long)
        torch.max(x, dim=0, out=pair)
        ----
        torch.empty(0) => empty f32[0]
        torch.add(x, y, out=z) => add f32[2,3]
        torch.empty(3) => empty f32[3]
        torch.empty(3, dtype=torch.long) => empty i64[3]
        torch.max(x, dim=0, out=pair) => max f32[3] i64[3]
    """,
    "text before an operation counts in bytes": """
        größe = x; z = größe * 2 + größe.sum()
        s = "日本語 🦜", x.neg(), "→", x @ w
        ----
        größe * 2 => Tensor.mul f32[2,3]
        größe.sum() => Tensor.sum f32[]
        größe * 2 + größe.sum() => Tensor.add f32[2,3]
        x.neg() => Tensor.neg f32[2,3]
        x @ w => Tensor.matmul f32[2,4]
    """,
    "factories": """
        z = torch.zeros(2, dtype=torch.int64) + torch.arange(2)
        q = torch.tensor([[1.0, 2.0]]) + torch.ones_like(z) + torch.full((2,), 7)
        r = torch.randn(2, 1, generator=None)
        ----
        torch.zeros(2, dtype=torch.int64) => zeros i64[2]
        torch.arange(2) => arange i64[2]
        torch.zeros(2, dtype=torch.int64) + torch.arange(2) => Tensor.add i64[2]
        torch.tensor([[1.0, 2.0]]) => tensor f32[1,2]
        torch.ones_like(z) => ones_like i64[2]
        torch.tensor([[1.0, 2.0]]) + torch.ones_like(z) => Tensor.add f32[1,2]
        torch.full((2,), 7) => full i64[2]
        torch.tensor([[1.0, 2.0]]) + torch.ones_like(z) + torch.full((2,), 7) => Tensor.add f32[1,2]
        torch.randn(2, 1, generator=None) => randn f32[2,1]
    """,
    "several results": """
        q = x.max(dim=1)
        r = x.max(dim=1).values + x.topk(2).indices[:, 0]
        u, s, v = torch.linalg.svd(x, full_matrices=False)
        ----
        x.max(dim=1) => Tensor.max f32[2] i64[2]
        x.max(dim=1) => Tensor.max f32[2] i64[2]
        x.topk(2) => Tensor.topk f32[2,2] i64[2,2]
        x.topk(2).indices[:, 0] => Tensor.__getitem__ i64[2]
        x.max(dim=1).values + x.topk(2).indices[:, 0] => Tensor.add f32[2]
        torch.linalg.svd(x, full_matrices=False) => linalg.svd f32[2,2] f32[2] f32[2,3]
    """,
    "an expression that raises": """
        try:
            z = (x * 2) @ (y + 1).relu()
        except RuntimeError:
            z = x @ w
        ----
        x * 2 => Tensor.mul f32[2,3]
        y + 1 => Tensor.add f32[2,3]
        (y + 1).relu() => Tensor.relu f32[2,3]
        (x * 2) @ (y + 1).relu() => Tensor.matmul raises RuntimeError
        x @ w => Tensor.matmul f32[2,4]
    """,
}
