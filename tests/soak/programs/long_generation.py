"""Generates text for so many seconds, with changing prompts, and prints how memory grows."""

import gc
import json
import logging
import sys
import time
import warnings

import torch
from transformers import LlamaConfig, LlamaForCausalLM

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)


def resident():
    gc.collect()
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        eos_token_id=None,
    )
).eval()
began = time.monotonic()
seconds = float(sys.argv[1])
tokens, before = 0, None
while (gone := time.monotonic() - began) < seconds:
    prompt = torch.randint(1, 64, (1 + tokens % 3, 3 + tokens % 17))
    model.generate(prompt, max_new_tokens=40 + tokens % 60, do_sample=True)
    tokens += 40 + tokens % 60
    if before is None and gone > seconds / 10:
        before = resident()
print(json.dumps({"tokens": tokens, "grown": resident() - before}))
