"""Models of the diffusers library at random initialisation and tiny configurations."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from diffusers.models.unets import unet_2d, unet_2d_blocks, unet_2d_condition

from tests.models.case import ModelCase, Program, plain_run, source_of


def unet() -> Program:
    """Build a UNet for images, with attention in its lower blocks."""
    torch.manual_seed(1)
    model = unet_2d.UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
        attention_head_dim=8,
    ).eval()
    inputs = {"sample": torch.randn(2, 3, 16, 16), "timestep": 10}
    return Program(model, inputs, plain_run)


def unet_with_text() -> Program:
    """Build a UNet that attends to a text, as Stable Diffusion does."""
    torch.manual_seed(1)
    model = unet_2d_condition.UNet2DConditionModel(
        sample_size=16,
        layers_per_block=1,
        block_out_channels=(8, 16),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        norm_num_groups=4,
        attention_head_dim=2,
        cross_attention_dim=12,
    ).eval()
    inputs = {
        "sample": torch.randn(2, 4, 16, 16),
        "timestep": 10,
        "encoder_hidden_states": torch.randn(2, 5, 12),
    }
    return Program(model, inputs, plain_run)


CASES = (
    ModelCase("unet", unet, source_of(unet_2d, unet_2d_blocks)),
    ModelCase("unet with text", unet_with_text, source_of(unet_2d_condition, unet_2d_blocks)),
)
