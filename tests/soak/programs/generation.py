"""generate() of a tiny Llama with a cache, beam search and sampling."""

import logging
import warnings

import torch
from state import report
from transformers import LlamaConfig, LlamaForCausalLM

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.manual_seed(13)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    pad_token_id=0,
    eos_token_id=None,
)
model = LlamaForCausalLM(config).eval()
prompt = torch.randint(1, 64, (2, 7))
found = [
    model.generate(prompt, max_new_tokens=12, do_sample=False).tolist(),
    model.generate(prompt, max_new_tokens=6, num_beams=3, do_sample=False).tolist(),
    model.generate(prompt, max_new_tokens=12, do_sample=True, top_k=5).tolist(),
]
report(model, found=found)
