"""Metric learning with miners and a memory of batches; tensordict modules; Hogwild in processes."""

import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.multiprocessing as multiprocessing  # noqa: E402
from pytorch_metric_learning import losses, miners, samplers  # noqa: E402
from pytorch_metric_learning.distances import CosineSimilarity  # noqa: E402
from state import digest, exact, report  # noqa: E402
from tensordict import TensorDict  # noqa: E402
from tensordict.nn import TensorDictModule, TensorDictSequential  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


def work(shared, results, seed):
    """Change a shared model from a process of its own."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(4, 5, generator=generator)
    loss = shared(inputs).square().mean()
    (gradient,) = torch.autograd.grad(loss, shared.weight)
    results.put((seed, exact(gradient.norm().item())))


def main():
    torch.manual_seed(11)
    np.random.seed(11)
    labels = torch.arange(4).repeat(12)
    inputs = torch.randn(48, 5) + labels[:, None]
    trunk = TensorDictModule(nn.Sequential(nn.Linear(5, 12), nn.Mish()), ["x"], ["hidden"])
    head = TensorDictModule(
        nn.utils.parametrizations.weight_norm(nn.Linear(12, 6)), ["hidden"], ["z"]
    )
    model = TensorDictSequential(trunk, head)
    criterion = losses.CrossBatchMemory(
        losses.TripletMarginLoss(margin=0.2, distance=CosineSimilarity()),
        embedding_size=6,
        memory_size=32,
        miner=miners.MultiSimilarityMiner(),
    )
    sampler = samplers.MPerClassSampler(labels, m=3, batch_size=12, length_before_new_iter=48)
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)
    found = []
    for _ in range(2):
        for x, y in DataLoader(TensorDataset(inputs, labels), batch_size=12, sampler=sampler):
            batch = model(TensorDict({"x": x, "y": y}, batch_size=[12]))
            loss = criterion(batch["z"], batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(exact(loss.item()))
    with torch.inference_mode():
        everything = model(TensorDict({"x": inputs, "y": labels}, batch_size=[48]))
    stacked = torch.stack([everything[:10], everything[10:20]]).to(torch.float64)
    stacked.memmap_("memmap")
    loaded = TensorDict.load_memmap("memmap")
    shared = nn.Linear(5, 3)
    shared.share_memory()
    for how in ("fork", "spawn"):
        context = multiprocessing.get_context(how)
        results = context.SimpleQueue()
        processes = [context.Process(target=work, args=(shared, results, it)) for it in range(2)]
        for process in processes:
            process.start()
        found += sorted(results.get() for _ in processes)
        for process in processes:
            process.join()
            found.append(process.exitcode)
    report(
        model,
        found=found,
        loaded=digest([loaded["z"], loaded["hidden"]]),
        keys=sorted(loaded.keys()),
    )


if __name__ == "__main__":
    main()
