"""Models of the transformers library at random initialisation and tiny configurations."""

from __future__ import annotations

import os
from typing import Any

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
import transformers as hf
from torch import nn

from tests.models.case import ModelCase, Program, plain_run, source_of, train_run

TINY_TEXT = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def tokens(rows: int, length: int) -> torch.Tensor:
    """Make token ids, none of which is a special one."""
    return torch.randint(3, 64, (rows, length))


def generate(model: Any, inputs: dict[str, Any]) -> object:
    """Let the model generate eight tokens, feeding its cache back."""
    return model.generate(
        **inputs, max_new_tokens=8, min_new_tokens=8, do_sample=False, use_cache=True
    )


def bert() -> Program:
    """Build an encoder, with a padded row in its batch."""
    torch.manual_seed(1)
    model = hf.BertModel(hf.BertConfig(**TINY_TEXT)).eval()
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, 5:] = 0
    return Program(model, {"input_ids": tokens(2, 7), "attention_mask": mask}, plain_run)


def bert_training() -> Program:
    """Build an encoder with a classification head and labels, with dropout on."""
    torch.manual_seed(1)
    model = hf.BertForSequenceClassification(hf.BertConfig(**TINY_TEXT, num_labels=3)).train()
    inputs = {"input_ids": tokens(2, 7), "labels": torch.tensor([0, 2])}
    return Program(model, inputs, train_run)


def albert() -> Program:
    """Build an encoder all of whose layers are one and the same module."""
    torch.manual_seed(1)
    model = hf.AlbertModel(hf.AlbertConfig(**TINY_TEXT, embedding_size=8)).eval()
    return Program(model, {"input_ids": tokens(2, 7)}, plain_run)


def gpt2_model() -> nn.Module:
    """Build a small GPT-2."""
    torch.manual_seed(1)
    return hf.GPT2LMHeadModel(
        hf.GPT2Config(
            vocab_size=64,
            n_positions=32,
            n_embd=16,
            n_layer=2,
            n_head=2,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=0,
        )
    )


def gpt2() -> Program:
    """Build a decoder that returns its cache."""
    return Program(gpt2_model().eval(), {"input_ids": tokens(2, 5), "use_cache": True}, plain_run)


def gpt2_generate() -> Program:
    """Build a decoder that generates."""
    return Program(gpt2_model().eval(), {"input_ids": tokens(2, 5)}, generate)


def gpt2_training() -> Program:
    """Build a decoder with labels, with dropout on."""
    ids = tokens(2, 6)
    return Program(gpt2_model().train(), {"input_ids": ids, "labels": ids.clone()}, train_run)


def llama_model() -> nn.Module:
    """Build a small Llama whose key and value heads are shared."""
    torch.manual_seed(1)
    return hf.LlamaForCausalLM(
        hf.LlamaConfig(**TINY_TEXT, num_key_value_heads=1, max_position_embeddings=32)
    )


def llama() -> Program:
    """Build a decoder with rotary positions that returns its cache."""
    return Program(llama_model().eval(), {"input_ids": tokens(2, 5), "use_cache": True}, plain_run)


def llama_generate() -> Program:
    """Build a decoder with rotary positions that generates."""
    return Program(llama_model().eval(), {"input_ids": tokens(2, 5)}, generate)


def mixtral() -> Program:
    """Build a mixture of experts."""
    torch.manual_seed(1)
    model = hf.MixtralForCausalLM(
        hf.MixtralConfig(
            **TINY_TEXT,
            num_key_value_heads=1,
            max_position_embeddings=32,
            num_local_experts=4,
            num_experts_per_tok=2,
        )
    ).eval()
    return Program(model, {"input_ids": tokens(2, 5), "output_router_logits": True}, plain_run)


def t5() -> Program:
    """Build an encoder-decoder."""
    torch.manual_seed(1)
    model = hf.T5ForConditionalGeneration(
        hf.T5Config(
            vocab_size=64,
            d_model=16,
            d_kv=8,
            d_ff=32,
            num_layers=2,
            num_heads=2,
            decoder_start_token_id=0,
        )
    ).eval()
    inputs = {"input_ids": tokens(2, 6), "decoder_input_ids": tokens(2, 4)}
    return Program(model, inputs, plain_run)


def t5_generate() -> Program:
    """Build an encoder-decoder that generates."""
    program = t5()
    return Program(program.model, {"input_ids": tokens(2, 6)}, generate)


def vit() -> Program:
    """Build a vision model."""
    torch.manual_seed(1)
    model = hf.ViTForImageClassification(
        hf.ViTConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            image_size=16,
            patch_size=8,
        )
    ).eval()
    return Program(model, {"pixel_values": torch.randn(2, 3, 16, 16)}, plain_run)


def clip() -> Program:
    """Build a vision and a text tower that meet."""
    torch.manual_seed(1)
    model = hf.CLIPModel(
        hf.CLIPConfig(
            text_config=TINY_TEXT,
            vision_config={
                "hidden_size": 16,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 32,
                "image_size": 16,
                "patch_size": 8,
            },
            projection_dim=8,
        )
    ).eval()
    inputs = {"input_ids": tokens(2, 7), "pixel_values": torch.randn(2, 3, 16, 16)}
    return Program(model, inputs, plain_run)


def whisper() -> Program:
    """Build a speech model."""
    torch.manual_seed(1)
    model = hf.WhisperModel(
        hf.WhisperConfig(
            vocab_size=64,
            d_model=16,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            num_mel_bins=8,
            max_source_positions=10,
            max_target_positions=16,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
            decoder_start_token_id=1,
        )
    ).eval()
    inputs = {"input_features": torch.randn(2, 8, 20), "decoder_input_ids": tokens(2, 4)}
    return Program(model, inputs, plain_run)


def wav2vec2() -> Program:
    """Build a speech model that listens to the wave itself."""
    torch.manual_seed(1)
    model = hf.Wav2Vec2Model(
        hf.Wav2Vec2Config(
            **TINY_TEXT,
            conv_dim=(8, 8),
            conv_stride=(4, 2),
            conv_kernel=(8, 3),
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
            num_feat_extract_layers=2,
        )
    ).eval()
    return Program(model, {"input_values": torch.randn(2, 160)}, plain_run)


def mamba() -> Program:
    """Build a state space model, whose Python path loops over the positions."""
    torch.manual_seed(1)
    model = hf.MambaForCausalLM(
        hf.MambaConfig(
            vocab_size=64, hidden_size=16, state_size=4, num_hidden_layers=2, time_step_rank=4
        )
    ).eval()
    return Program(model, {"input_ids": tokens(2, 5), "use_cache": True}, plain_run)


def _case(build: Any, model: type) -> ModelCase:
    return ModelCase(build.__name__.replace("_", " "), build, source_of(model))


CASES = (
    _case(bert, hf.BertModel),
    _case(bert_training, hf.BertModel),
    _case(albert, hf.AlbertModel),
    _case(gpt2, hf.GPT2Model),
    _case(gpt2_generate, hf.GPT2Model),
    _case(gpt2_training, hf.GPT2Model),
    _case(llama, hf.LlamaModel),
    _case(llama_generate, hf.LlamaModel),
    _case(mixtral, hf.MixtralModel),
    _case(t5, hf.T5Model),
    _case(t5_generate, hf.T5Model),
    _case(vit, hf.ViTModel),
    _case(clip, hf.CLIPModel),
    _case(whisper, hf.WhisperModel),
    _case(wav2vec2, hf.Wav2Vec2Model),
    _case(mamba, hf.MambaModel),
)
