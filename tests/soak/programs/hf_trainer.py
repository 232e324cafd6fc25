"""transformers.Trainer: training with evaluation, clipping, accumulation, and a checkpoint."""

import logging
import warnings

import torch
from state import exact, file_digest, report
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
set_seed(3)


class Sentences(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(count)
        self.ids = torch.randint(0, 64, (count, 12), generator=generator)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "attention_mask": ids != 0, "labels": ids.sum() % 2}


config = BertConfig(
    vocab_size=64,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
)
model = BertForSequenceClassification(config)
arguments = TrainingArguments(
    output_dir="out",
    max_steps=8,
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    eval_strategy="steps",
    eval_steps=4,
    save_steps=8,
    logging_steps=4,
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
    seed=3,
)
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=Sentences(40),
    eval_dataset=Sentences(8),
)
outcome = trainer.train()
losses = [exact(it["loss"]) for it in trainer.state.log_history if "loss" in it]
evaluated = [exact(it["eval_loss"]) for it in trainer.state.log_history if "eval_loss" in it]
predicted = trainer.predict(Sentences(5)).predictions
report(
    model,
    losses=losses,
    evaluated=evaluated,
    predicted=[exact(it) for it in predicted.ravel()],
    checkpoint=file_digest("out/checkpoint-8/model.safetensors"),
)
