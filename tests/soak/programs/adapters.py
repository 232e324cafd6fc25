"""LoRA adapters by peft on a small Llama, on data that datasets maps in two processes."""

import logging
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

import torch  # noqa: E402
from datasets import Dataset, disable_progress_bars  # noqa: E402
from peft import LoraConfig, PeftModel, get_peft_model  # noqa: E402
from state import exact, file_digest, report  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM  # noqa: E402

disable_progress_bars()


def tokenize(row):
    tokens = torch.tensor([ord(letter) % 40 + 1 for letter in row["text"]])
    return {"ids": tokens.clamp(max=47).tolist(), "size": int((tokens * 2).sum())}


def main():
    torch.manual_seed(4)
    rows = Dataset.from_dict({"text": [f"row {number:03} of some text" for number in range(24)]})
    rows = rows.map(tokenize, num_proc=2, load_from_cache_file=False)
    rows = rows.filter(lambda row: row["size"] % 2 == 0).with_format("torch", columns=["ids"])
    config = LlamaConfig(
        vocab_size=48,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        attention_dropout=0.1,
    )
    base = LlamaForCausalLM(config)
    base.save_pretrained("base")
    lora = LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.1)
    model = get_peft_model(base, lora)
    model.enable_input_require_grads()
    model.gradient_checkpointing_enable()
    trained = [it for it in model.parameters() if it.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)
    losses = []
    for start in range(0, 24, 4):
        ids = rows[start : start + 4]["ids"]
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(exact(loss.item()))
    model.save_pretrained("adapter")
    again = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained("base"), "adapter")
    merged = again.merge_and_unload().eval()
    with model.disable_adapter(), torch.no_grad():
        without = exact(model.eval()(input_ids=rows[:2]["ids"]).logits.sum().item())
    generated = merged.generate(rows[:2]["ids"][:, :4], max_new_tokens=6, do_sample=True)
    report(
        merged,
        losses=losses,
        without=without,
        generated=generated.tolist(),
        adapter=file_digest("adapter/adapter_model.safetensors"),
    )


if __name__ == "__main__":
    main()
