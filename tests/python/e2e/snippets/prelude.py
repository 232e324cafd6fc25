"""The names that the snippets of documents use and do not make."""

from __future__ import annotations

import torch
from torch import Tensor, nn

batch_size, seq_len, d_in, d_out = 10, 20, 6, 6
num_heads, context_window, dropout = 3, 20, 0.1


class MHA(nn.Module):
    """Multi-head attention as one would write it to learn how it works."""

    def __init__(
        self,
        d_in: int,
        d_out: int,
        seq_len: int,
        num_heads: int,
        context_window: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query_weights = nn.Linear(d_in, d_out)
        self.key_weights = nn.Linear(d_in, d_out)
        self.value_weights = nn.Linear(d_in, d_out)
        self.out_projection = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)

    def split_heads(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.num_heads, width // self.num_heads).transpose(1, 2)

    def calculate_attention(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
        return self.drop(weights) @ v

    def combine_heads(self, x: Tensor) -> Tensor:
        batch, heads, length, width = x.shape
        return x.transpose(1, 2).contiguous().view(batch, length, heads * width)

    def forward(self, x: Tensor) -> Tensor:
        q = self.split_heads(self.query_weights(x))
        k = self.split_heads(self.key_weights(x))
        v = self.split_heads(self.value_weights(x))
        return self.out_projection(self.combine_heads(self.calculate_attention(q, k, v)))


x = input_tensor = torch.rand(batch_size, seq_len, d_in)
model = MHA(d_in, d_out, seq_len, num_heads, context_window, dropout)
args = (x,)
kwargs: dict[str, Tensor] = {}
