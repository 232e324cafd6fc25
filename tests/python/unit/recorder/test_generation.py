"""A cache that grows with every token: bounded records and a bounded process."""

from __future__ import annotations

from tests.support.recorder import Harmless, outline

GENERATION = """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.query, self.key, self.value = (nn.Linear(8, 8) for _ in range(3))
        self.head = nn.Linear(8, 50)

    def forward(self, tokens, cache=None):
        x = self.embed(tokens)
        q, k, v = self.query(x), self.key(x), self.value(x)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=1), torch.cat([cache[1], v], dim=1)
        weights = (q @ k.transpose(1, 2) / 8**0.5).softmax(-1)
        return self.head(weights @ v), (k, v)

net = Decoder().eval()

def generate(steps):
    tokens, cache = torch.zeros(1, 4, dtype=torch.long), None
    made = [tokens]
    with torch.inference_mode():
        for _ in range(steps):
            logits, cache = net(made[-1], cache)
            made.append(logits[:, -1:].argmax(-1))
    return torch.cat(made, dim=1)

def main():
    return generate(400)
"""


def test_growing_cache_costs_nothing_more(harmless: Harmless) -> None:
    trace = harmless(GENERATION)
    assert len(trace.modules) <= 6 * 18
    assert len(trace.ops) <= 30 * 18
    widest = [line.strip() for line in outline(trace).splitlines() if "×38" in line]
    assert "root: Decoder(i64[1,1], (f32[1,19..402,8], f32[1,19..402,8])) -> " in "".join(widest)


def test_growing_cache_with_kernels(harmless: Harmless) -> None:
    trace = harmless(GENERATION.replace("generate(400)", "generate(120)"), level="aten")
    assert len(trace.ops) <= 80 * 18
