"""Translates dates like "3 may 2021" into numbers, with recurrent networks and attention.

The decoder goes through the answer one character at a time, so its modules are called many times.

python -m shapetrace run --view listing examples/encoder_decoder.py
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

EXAMPLES = {
    "3 may 2021": "2021-05-03",
    "29 february 2024": "2024-02-29",
    "14 july 1789": "1789-07-14",
    "1 january 1970": "1970-01-01",
}
PADDING, START = " ", "^"
ALPHABET = sorted({PADDING, START, *"".join([*EXAMPLES, *EXAMPLES.values()])})


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), width)
        self.recurrent = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * width, width)

    def forward(self, source: Tensor) -> tuple[Tensor, Tensor]:
        memory, last = self.recurrent(self.embedding(source))
        forwards, backwards = last.unbind(dim=0)
        state = torch.tanh(self.bridge(torch.cat([forwards, backwards], dim=-1)))
        return memory, state


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_state = nn.Linear(width, width)
        self.of_memory = nn.Linear(2 * width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, state: Tensor, memory: Tensor) -> Tensor:
        combined = torch.tanh(self.of_state(state).unsqueeze(1) + self.of_memory(memory))
        weights = self.score(combined).squeeze(-1).softmax(dim=-1)
        return torch.einsum("bs,bsd->bd", weights, memory)


class Decoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), width)
        self.attention = Attention(width)
        self.cell = nn.GRUCell(3 * width, width)
        self.output = nn.Linear(width, len(ALPHABET))

    def forward(self, previous: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        context = self.attention(state, memory)
        state = self.cell(torch.cat([self.embedding(previous), context], dim=-1), state)
        return self.output(state), state


class Translator(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.encoder = Encoder(width)
        self.decoder = Decoder(width)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, state = self.encoder(source)
        previous = torch.full_like(target[:, 0], ALPHABET.index(START))
        steps = []
        for position in range(target.shape[1]):
            logits, state = self.decoder(previous, state, memory)
            steps.append(logits)
            previous = target[:, position]
        return torch.stack(steps, dim=1)


def as_tensor(texts: list[str]) -> Tensor:
    longest = max(len(text) for text in texts)
    padded = [text.ljust(longest, PADDING) for text in texts]
    return torch.tensor([[ALPHABET.index(character) for character in text] for text in padded])


def main() -> None:
    torch.manual_seed(0)
    source, target = as_tensor(list(EXAMPLES)), as_tensor(list(EXAMPLES.values()))
    model = Translator()
    logits = model(source, target)
    loss = F.cross_entropy(logits.transpose(1, 2), target)
    loss.backward()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
