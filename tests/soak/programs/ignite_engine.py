"""An ignite engine with its events and checkpoints, torchmetrics, einops layers, and torch.func."""

import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402
from einops import einsum, rearrange, reduce  # noqa: E402
from einops.layers.torch import Rearrange  # noqa: E402
from ignite.engine import Engine, Events  # noqa: E402
from ignite.handlers import EarlyStopping, ModelCheckpoint, TerminateOnNan, Timer  # noqa: E402
from ignite.metrics import Loss, RunningAverage  # noqa: E402
from state import digest, exact, report  # noqa: E402
from torch import nn  # noqa: E402
from torch.func import functional_call, grad, vmap  # noqa: E402
from torchmetrics import MetricCollection  # noqa: E402
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score  # noqa: E402

torch.manual_seed(3)


class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.split = Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4)
        self.embed = nn.Linear(48, 16)
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, images):
        tokens = self.embed(self.split(images))
        queries = rearrange(self.query(tokens), "b t (n d) -> b n t d", n=4)
        keys = rearrange(self.key(tokens), "b t (n d) -> b n t d", n=4)
        weights = einsum(queries, keys, "b n i d, b n j d -> b n i j").softmax(-1)
        tokens = tokens + reduce(weights @ keys, "b n t d -> b t (n d)", "sum")
        return self.head(reduce(tokens, "b t d -> b d", "mean"))


model = Patches()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
losses = []


def train_step(engine, batch):
    images, labels = batch
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    losses.append(exact(loss.item()))
    return loss.item()


def evaluate(engine, batch):
    with torch.no_grad():
        return model(batch[0]), batch[1]


data = [(torch.randn(4, 3, 8, 8), torch.randint(0, 3, (4,))) for _ in range(5)]
trainer, evaluator = Engine(train_step), Engine(evaluate)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
Loss(criterion).attach(evaluator, "loss")
Timer(average=True).attach(trainer)
metrics = MetricCollection(
    {"accuracy": MulticlassAccuracy(3), "f1": MulticlassF1Score(3, average="macro")}
)
stopping = EarlyStopping(2, lambda engine: -engine.state.metrics["loss"], trainer)
evaluator.add_event_handler(Events.COMPLETED, stopping)
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
saving = ModelCheckpoint("checkpoints", n_saved=2, require_empty=False)
trainer.add_event_handler(Events.EPOCH_COMPLETED, saving, {"model": model, "optimizer": optimizer})
found = []


@evaluator.on(Events.ITERATION_COMPLETED)
def update(engine):
    metrics.update(*engine.state.output)


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(data[:2])
    found.append({name: exact(value.item()) for name, value in metrics.compute().items()})
    metrics.reset()


@trainer.on(Events.ITERATION_COMPLETED(every=4))
def fail_once(engine):
    if engine.state.iteration == 8:
        try:
            model(torch.ones(2, 3, 6, 6))
        except Exception as error:
            found.append(type(error).__name__)


trainer.run(data, max_epochs=4)
parameters = {name: value.detach() for name, value in model.named_parameters()}


def loss_of_one(parameters, image, label):
    return criterion(functional_call(model, parameters, (image[None],)), label[None])


gradients = vmap(grad(loss_of_one), in_dims=(None, 0, 0))(parameters, *data[0])
saved = torch.load(saving.last_checkpoint, weights_only=False)
report(
    model,
    losses=losses,
    found=found,
    each=digest(gradients[name] for name in sorted(gradients)),
    saved=digest(saved["model"].values()),
    running=exact(trainer.state.metrics["loss"]),
)
