"""Trains a small GPT, written from scratch, to continue a nursery rhyme letter by letter.

python -m shapetrace run examples/train_gpt.py --epochs 1
"""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TEXT = """\
Twinkle, twinkle, little star, how I wonder what you are!
Up above the world so high, like a diamond in the sky.
When the blazing sun is gone, when he nothing shines upon,
then you show your little light, twinkle, twinkle, all the night.
"""

LETTERS = sorted(set(TEXT))


class CausalSelfAttention(nn.Module):
    future: Tensor

    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        future = torch.ones(longest, longest, dtype=torch.bool).triu(diagonal=1)
        self.register_buffer("future", future, persistent=False)

    def split_heads(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        x = x.view(batch, length, self.heads, width // self.heads)
        return x.transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        query = self.split_heads(self.query(x))
        key = self.split_heads(self.key(x))
        value = self.split_heads(self.value(x))

        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        weights = scores.softmax(dim=-1)
        mixed = weights @ value

        merged = mixed.transpose(1, 2).reshape(batch, length, width)
        return self.output(merged)


class FeedForward(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(F.gelu(self.expand(x)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, longest)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class GPT(nn.Module):
    def __init__(self, vocabulary: int, longest: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width, heads, longest) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def random_batch(letters: Tensor, batch: int, length: int) -> tuple[Tensor, Tensor]:
    windows = letters.unfold(0, length + 1, step=1)
    chosen = windows[torch.randint(len(windows), (batch,))]
    return chosen[:, :-1], chosen[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="steps in one epoch")
    options = parser.parse_args()

    torch.manual_seed(0)
    letters = torch.tensor([LETTERS.index(letter) for letter in TEXT])
    model = GPT(vocabulary=len(LETTERS), longest=32, width=48, heads=4, layers=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    for epoch in range(1, options.epochs + 1):
        total = 0.0
        for _ in range(options.steps):
            inputs, targets = random_batch(letters, batch=8, length=32)
            logits = model(inputs)
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / options.steps:.3f}")


if __name__ == "__main__":
    main()
