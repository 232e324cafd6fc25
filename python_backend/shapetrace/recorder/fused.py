"""Where torch takes a fused path that any function mode would close, changing results and time.

Each check names only conditions without which the path is never taken. So it may step around a call
that would not have been fused after all, and never opens one that would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Module, MultiheadAttention, TransformerEncoder, TransformerEncoderLayer

FusedCheck = Callable[[Any, tuple[Any, ...], dict[str, Any]], bool]


def fused_path_check(module: Module) -> FusedCheck | None:
    """The check for modules of this class, or None where torch has no fused path for it."""
    kind = type(module)
    forward = getattr(kind, "forward", None)
    if forward is TransformerEncoderLayer.forward:
        return _encoder_layer
    if forward is TransformerEncoder.forward:
        return _encoder
    if forward is MultiheadAttention.forward:
        return _attention
    return None


def _fusing_now(module: Any) -> bool:
    """The conditions of all fused paths: evaluation, no autocast, nothing that needs a gradient."""
    if module.training or torch.is_autocast_enabled():
        return False
    enabled = getattr(torch.backends.mha, "get_fastpath_enabled", None)
    if enabled is not None and not enabled():
        return False
    return not torch.is_grad_enabled() or not any(
        parameter.requires_grad for parameter in module.parameters()
    )


def _encoder_layer(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    attention = module.self_attn
    return (
        _fusing_now(module)
        and attention.batch_first
        and attention.in_proj_bias is not None
        and attention._qkv_same_embed_dim
        and bool(module.activation_relu_or_gelu)
        and attention.num_heads % 2 == 0
        and module.norm1.eps == module.norm2.eps
    )


def _encoder(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    masked = len(args) > 2 or kwargs.get("src_key_padding_mask") is not None
    return masked and bool(getattr(module, "use_nested_tensor", False)) and _fusing_now(module)


def _attention(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return (
        _fusing_now(module)
        and module.batch_first
        and module.num_heads % 2 == 0
        and module.in_proj_weight is not None
        and module.bias_k is None
        and module.bias_v is None
        and not module.add_zero_attn
    )
