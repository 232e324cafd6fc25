"""Lightning: fit with validation and a checkpoint, and prediction from it."""

import logging
import warnings

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

import lightning as L  # noqa: E402
import torch  # noqa: E402
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402
from state import digest, exact, report  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

L.seed_everything(11, verbose=False)


class Classifier(L.LightningModule):
    def __init__(self, width: int = 16):
        super().__init__()
        self.save_hyperparameters()
        self.body = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.BatchNorm1d(width))
        self.head = nn.Linear(width, 4)
        self.seen = []

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, index):
        x, wanted = batch
        loss = nn.functional.cross_entropy(self(x), wanted)
        self.seen.append(exact(loss.item()))
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, wanted = batch
        self.log("valid", nn.functional.cross_entropy(self(x), wanted))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


data = TensorDataset(torch.randn(48, 8), torch.randint(0, 4, (48,)))
loader = DataLoader(data, batch_size=8)
model = Classifier()
trainer = L.Trainer(
    max_epochs=2,
    accelerator="cpu",
    devices=1,
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[ModelCheckpoint("saved", filename="last", monitor="valid")],
)
trainer.fit(model, loader, DataLoader(data, batch_size=16))
valid = exact(trainer.callback_metrics["valid"].item())
loaded = Classifier.load_from_checkpoint("saved/last.ckpt")
predicted = trainer.predict(loaded, DataLoader(data.tensors[0], batch_size=16))
report(model, losses=model.seen, predicted=digest(predicted), valid=valid)
