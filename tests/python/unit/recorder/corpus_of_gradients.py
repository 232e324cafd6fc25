"""Programs that compute gradients, each in another way."""

from __future__ import annotations

PROGRAMS = {
    "backward twice": """
def main():
    x = torch.ones(2, 3, requires_grad=True)
    loss = (x * 2).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    return x.grad
""",
    "gradient of a gradient": """
def main():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    return first, second
""",
    "several roots": """
def main():
    x = torch.ones(3, requires_grad=True)
    torch.autograd.backward([x.sum(), (x * x).sum()], inputs=[x])
    return x.grad
""",
    "tensor hooks": """
def triple(leaf):
    leaf.grad.mul_(3)

def main():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad.clamp(max=0.5))
    y.retain_grad()
    x.register_post_accumulate_grad_hook(triple)
    y.sum().backward()
    return x.grad, y.grad
""",
    "node hooks": """
def main():
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).exp()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.sum().backward()
    return x.grad, type(y.grad_fn).__name__
""",
    "saved tensors hooks": """
def main():
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = (x * x).sum()
    y.backward()
    return x.grad
""",
    "anomaly detection": """
def main():
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.detect_anomaly():
        (x * 2).sum().backward()
    return x.grad
""",
    "function of the program's own": """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x * grad

    @staticmethod
    def vmap(info, in_dims, x):
        return x * x * x, 0

def main():
    x = torch.ones(3, requires_grad=True)
    Cube.apply(x).sum().backward()
    return x.grad, torch.func.vmap(lambda v: v * 2)(x)
""",
    "transforms": """
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

def f(x):
    return (x.sin() * x).sum()

def main():
    x = torch.arange(6.0).view(2, 3)
    net = nn.Linear(3, 1)
    parameters = dict(net.named_parameters())
    loss = lambda parameters, row: functional_call(net, parameters, (row,)).sum()
    return (
        vmap(f)(x), grad(f)(x), jacrev(torch.sin)(x), jacfwd(torch.sin)(x[0]), hessian(f)(x[0]),
        vmap(grad(f))(x), vmap(vmap(torch.exp, in_dims=1))(x.view(1, 2, 3)),
        jvp(f, (x,), (x,)), vjp(f, x)[1](torch.tensor(1.0)),
        vmap(grad(loss), in_dims=(None, 0))(parameters, x),
        vmap(lambda row: row + torch.rand(3), randomness="different")(x),
    )
""",
    "checkpoints": """
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

def main():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.ReLU(), nn.Linear(3, 3))
    x = torch.ones(2, 3, requires_grad=True)
    grads = []
    for reentrant in (True, False):
        checkpoint(net, x, use_reentrant=reentrant).sum().backward()
        checkpoint_sequential(net, 2, x, use_reentrant=reentrant).sum().backward()
        grads += [x.grad.clone(), *[p.grad.clone() for p in net.parameters()]]
    return grads
""",
    "accumulated and clipped": """
def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    for _ in range(3):
        optimizer.zero_grad()
        for part in torch.ones(2, 2, 3):
            (net(part) ** 2).mean().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        scheduler.step()
    return net.state_dict(), optimizer.state_dict()["state"]
""",
    "step with a closure": """
def main():
    net = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
    x = torch.ones(2, 3)

    def closure():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return net.state_dict()
""",
    "grad modes": """
def main():
    net, x = nn.Linear(3, 3), torch.ones(2, 3)
    seen = []
    for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        with mode():
            y = net(x)
            seen.append((y.requires_grad, y.is_inference(), torch.is_grad_enabled()))
    @torch.no_grad()
    def decorated():
        return net(x)
    with torch.set_grad_enabled(False):
        seen.append(net(x).requires_grad)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = net(x) + x
        with torch.autocast("cpu", enabled=False):
            w = net(x)
    return seen, decorated(), z, w
""",
    "random numbers": """
def main():
    net, x = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)), torch.ones(4, 3)
    with torch.random.fork_rng():
        a = net(x)
    generator = torch.Generator().manual_seed(3)
    return a, net(x), torch.rand(2), torch.randn(2, generator=generator), torch.randperm(5)
""",
}
