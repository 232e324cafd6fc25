"""Statements of every form, as programs, and the calls that each makes."""

EXAMPLES = {
    "augmented assignment": """
        x += y
        x -= y * 2
        x *= 2; x /= 3
        z = x
        z @= w
        x **= 2
        ----
        x += y => Tensor.add_ f32[2,3]
        y * 2 => Tensor.mul f32[2,3]
        x -= y * 2 => Tensor.sub_ f32[2,3]
        x *= 2 => Tensor.mul_ f32[2,3]
        x /= 3 => Tensor.div_ f32[2,3]
        z @= w => Tensor.matmul f32[2,4]
        x **= 2 => Tensor.__ipow__ f32[2,3]
    """,
    "augmented assignment of an index": """
        x[0] += y[1]
        x[:, 1:] *= 2
        ----
        x[0] => Tensor.__getitem__ f32[3]
        y[1] => Tensor.__getitem__ f32[3]
        x[0] += y[1] => Tensor.add_ f32[3]
        x[0] => Tensor.__setitem__ no tensor
        x[:, 1:] => Tensor.__getitem__ f32[2,2]
        x[:, 1:] *= 2 => Tensor.mul_ f32[2,2]
        x[:, 1:] => Tensor.__setitem__ no tensor
    """,
    "index assignment": """
        x[0] = 1
        x[:, :2] = y[:, 1:]
        x[x > 0] = b.sum()
        ----
        x[0] => Tensor.__setitem__ no tensor
        y[:, 1:] => Tensor.__getitem__ f32[2,2]
        x[:, :2] => Tensor.__setitem__ no tensor
        b.sum() => Tensor.sum f32[]
        x > 0 => Tensor.gt bool[2,3]
        x[x > 0] => Tensor.__setitem__ no tensor
    """,
    "assignment to several targets": """
        p = q = x + y
        (r, s), t = x.chunk(2), y * 2
        ----
        x + y => Tensor.add f32[2,3]
        x.chunk(2) => Tensor.chunk f32[1,3] f32[1,3]
        y * 2 => Tensor.mul f32[2,3]
    """,
    "unpacking a tuple": """
        q, k = x.chunk(2)
        first, *rest = x.unbind(1)
        ----
        x.chunk(2) => Tensor.chunk f32[1,3] f32[1,3]
        x.unbind(1) => Tensor.unbind f32[2] f32[2] f32[2]
    """,
    "unpacking a tensor": """
        q, k = x
        ----
        q, k => Tensor.unbind f32[3] f32[3] inside
    """,
    "annotated assignment": """
        z: torch.Tensor = x * 2
        ----
        x * 2 => Tensor.mul f32[2,3]
    """,
    "assignment to attributes and items": """
        class Box: pass
        box, table = Box(), {}
        box.value = x * 2
        table["sum"] = box.value.sum()
        box.value += 1
        table["sum"] *= 2
        ----
        x * 2 => Tensor.mul f32[2,3]
        box.value.sum() => Tensor.sum f32[]
        box.value += 1 => Tensor.add_ f32[2,3]
        table["sum"] *= 2 => Tensor.mul_ f32[]
    """,
    "for over a tensor": """
        for row in x:
            z = row * 2
        ----
        x => Tensor.unbind f32[3] f32[3] inside
        row * 2 => Tensor.mul f32[3] ×2
    """,
    "for over an expression": """
        for part in x.split(1):
            for i in range(2):
                z = part + i
        ----
        x.split(1) => Tensor.split f32[1,3] f32[1,3]
        part + i => Tensor.add f32[1,3] ×4
    """,
    "for with a changing shape": """
        z = b[:1]
        for i in range(3):
            z = torch.cat([z, b])
        ----
        b[:1] => Tensor.__getitem__ f32[1]
        torch.cat([z, b]) => cat f32[4]
        torch.cat([z, b]) => cat f32[7]
        torch.cat([z, b]) => cat f32[10]
    """,
    "while on a tensor": """
        z = x.abs().sum() + 9
        while z > 4:
            z = z / 2
        ----
        x.abs() => Tensor.abs f32[2,3]
        x.abs().sum() => Tensor.sum f32[]
        x.abs().sum() + 9 => Tensor.add f32[]
        z > 4 => Tensor.gt bool[] ×4
        line 2 => Tensor.__bool__ no tensor ×4
        z / 2 => Tensor.div f32[] ×3
    """,
    "if and elif on tensors": """
        if x.sum() > 1e9:
            z = x
        elif (x < 1e9).all():
            z = x * 2
        ----
        x.sum() => Tensor.sum f32[]
        x.sum() > 1e9 => Tensor.gt bool[]
        line 1 => Tensor.__bool__ no tensor
        x < 1e9 => Tensor.lt bool[2,3]
        (x < 1e9).all() => Tensor.all bool[]
        line 3 => Tensor.__bool__ no tensor
        x * 2 => Tensor.mul f32[2,3]
    """,
    "with": """
        with torch.no_grad():
            z = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            q = x @ w
        ----
        x * 2 => Tensor.mul f32[2,3]
        x @ w => Tensor.matmul bfloat16[2,4]
    """,
    "with a device": """
        with torch.device("meta"):
            z = torch.ones(2, 2)
            q = z + z
        ----
        torch.ones(2, 2) => ones f32[2,2]
        z + z => Tensor.add f32[2,2]
    """,
    "with a mode that passes calls on": """
        from torch.overrides import TorchFunctionMode
        class Pass(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))
        with Pass():
            z = x.relu() + F.relu(y)
        ----
        x.relu() => Tensor.relu f32[2,3] inside
        F.relu(y) => nn.functional.relu f32[2,3] inside
        x.relu() + F.relu(y) => Tensor.add f32[2,3] inside
    """,
    "with a mode that looks at results": """
        from torch.overrides import TorchFunctionMode
        class Check(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                assert not torch.isnan(result).any()
                return result
        with Check():
            z = x.relu()
        ----
        x.relu() => Tensor.relu f32[2,3] inside
        torch.isnan(result) => isnan bool[2,3]
        torch.isnan(result).any() => Tensor.any bool[]
        line 5 => Tensor.__bool__ no tensor
    """,
    "try, except and finally": """
        try:
            z = x + w
        except RuntimeError as error:
            z = x + y
        else:
            z = x - y
        finally:
            z = z * 2
        ----
        x + w => Tensor.add raises RuntimeError
        x + y => Tensor.add f32[2,3]
        z * 2 => Tensor.mul f32[2,3]
    """,
    "assert": """
        assert (x < 1e9).all(), x.sum()
        ----
        x < 1e9 => Tensor.lt bool[2,3]
        (x < 1e9).all() => Tensor.all bool[]
        line 1 => Tensor.__bool__ no tensor
    """,
    "delete": """
        z = x * 2
        del z
        z = y * 2
        ----
        x * 2 => Tensor.mul f32[2,3]
        y * 2 => Tensor.mul f32[2,3]
    """,
    "match": """
        match x.shape:
            case (rows, 3):
                z = x * rows
            case _:
                z = x
        match {"k": x + y}:
            case {"k": value} if value.sum() < 1e9:
                z = value.T
        ----
        x * rows => Tensor.mul f32[2,3]
        x + y => Tensor.add f32[2,3]
        value.sum() => Tensor.sum f32[]
        value.sum() < 1e9 => Tensor.lt bool[]
        line 7 => Tensor.__bool__ no tensor
        value.T => Tensor.T f32[3,2]
    """,
    "tabs": """
        if True:
        \tz = x * 2
        \tif True:
        \t\tz =\tz +\ty
        ----
        x * 2 => Tensor.mul f32[2,3]
        z +\ty => Tensor.add f32[2,3]
    """,
    "a line joined by a backslash": """
        z = x * 2 \\
            + y * 3
        ----
        x * 2 => Tensor.mul f32[2,3]
        y * 3 => Tensor.mul f32[2,3]
        x * 2 \\ + y * 3 => Tensor.add f32[2,3]
    """,
    "semicolons and one-line bodies": """
        for i in range(2): z = x * i; q = z + y
        if True: z = x.neg(); q = z.exp()
        ----
        x * i => Tensor.mul f32[2,3] ×2
        z + y => Tensor.add f32[2,3] ×2
        x.neg() => Tensor.neg f32[2,3]
        z.exp() => Tensor.exp f32[2,3]
    """,
    "autograd": """
        x.requires_grad_()
        loss = (x * y).sum()
        loss.backward()
        g = x.grad * 2
        with torch.no_grad():
            x -= 0.1 * x.grad
        x.grad = None
        ----
        x.requires_grad_() => Tensor.requires_grad_ f32[2,3]
        x * y => Tensor.mul f32[2,3]
        (x * y).sum() => Tensor.sum f32[]
        loss.backward() => Tensor.backward no tensor
        x.grad => Tensor.grad f32[2,3]
        x.grad * 2 => Tensor.mul f32[2,3]
        x.grad => Tensor.grad f32[2,3]
        0.1 * x.grad => Tensor.mul f32[2,3]
        x -= 0.1 * x.grad => Tensor.sub_ f32[2,3]
    """,
    "code without a source file": """
        exec("z = x * 2\\nq = z.sum()")
        r = eval("x + y")
        ----
        <string> => Tensor.mul f32[2,3]
        <string> => Tensor.sum f32[]
        <string> => Tensor.add f32[2,3]
    """,
}
