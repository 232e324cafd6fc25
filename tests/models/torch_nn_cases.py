"""Models out of torch.nn's own layers, and the small programs around them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.models.case import ModelCase, Program, plain_run


class SequenceTagger(nn.Module):
    """A two-layer LSTM in both directions, with a packed batch."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Tag every token."""
        embedded = self.embedding(tokens)
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True)
        hidden, (last, cell) = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(hidden, batch_first=True)
        scores = self.head(padded)
        forwards, backwards = last[-2], last[-1]
        summary = torch.cat([forwards, backwards], dim=-1)
        return scores, summary, cell


class SelfAttention(nn.Module):
    """One MultiheadAttention with a mask, a residual and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Attend, add and normalise."""
        mixed, weights = self.attention(x, x, x, key_padding_mask=padding)
        x = self.norm(x + mixed)
        peak = weights.amax(dim=-1, keepdim=True)
        x *= peak
        return x, weights


class Classifier(nn.Module):
    """A TransformerEncoder with something before and behind it."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Encode, pool and classify."""
        positions = torch.arange(x.shape[1], dtype=x.dtype)
        shifted = x + positions[:, None]
        encoded = self.encoder(shifted)
        pooled = encoded.mean(dim=1)
        logits = self.head(pooled)
        return logits


def training_step(model: nn.Module, inputs: dict[str, Any]) -> object:
    """Make one step of training with a loss of our own."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    logits = model(**inputs)
    loss = functional.cross_entropy(logits, torch.tensor([0, 2]))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return logits, loss, norm, list(model.parameters())


def lstm() -> Program:
    """Build the tagger and a batch of two lengths."""
    torch.manual_seed(1)
    inputs = {"tokens": torch.randint(0, 20, (2, 7)), "lengths": torch.tensor([7, 4])}
    return Program(SequenceTagger(), inputs, plain_run)


def attention() -> Program:
    """Build the attention with dropout on."""
    torch.manual_seed(1)
    padding = torch.zeros(2, 4, dtype=torch.bool)
    padding[1, 3] = True
    inputs = {"x": torch.randn(2, 4, 8), "padding": padding}
    return Program(SelfAttention().train(), inputs, plain_run)


def attention_in_eval() -> Program:
    """Build the attention so that torch takes its fused path."""
    program = attention()
    program.model.eval()
    return program


def encoder_training() -> Program:
    """Build the classifier for a step of training."""
    torch.manual_seed(1)
    return Program(Classifier().train(), {"x": torch.randn(2, 5, 8)}, training_step)


def encoder_in_eval() -> Program:
    """Build the classifier so that torch takes its fused path."""
    torch.manual_seed(1)
    return Program(Classifier().eval(), {"x": torch.randn(2, 5, 8)}, plain_run)


CASES = (
    ModelCase("nn.LSTM", lstm, (__file__,)),
    ModelCase("nn.MultiheadAttention", attention, (__file__,)),
    ModelCase("nn.MultiheadAttention in eval", attention_in_eval, (__file__,), fused=True),
    ModelCase("nn.TransformerEncoder training", encoder_training, (__file__,)),
    ModelCase("nn.TransformerEncoder in eval", encoder_in_eval, (__file__,), fused=True),
)
