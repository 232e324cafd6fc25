"""DataLoader workers by fork, spawn and forkserver: random numbers, an error in a worker."""

import random

import torch
from state import digest, exact, report
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info


class Augmented(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        image = torch.full((3, 6, 6), float(index))
        if random.random() < 0.5:
            image = image.flip(-1)
        return nn.functional.pad(image + torch.randn(3, 6, 6), (1, 1, 1, 1)), index


class Failing(Augmented):
    def __getitem__(self, index):
        if index == 5:
            raise ValueError("item five")
        return super().__getitem__(index)


class Streamed(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        for index in range(worker.id, 8, worker.num_workers):
            yield torch.arange(4) * index


def collate(items):
    return torch.stack([image for image, _ in items]), [index for _, index in items]


if __name__ == "__main__":
    torch.manual_seed(9)
    random.seed(9)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    found = []
    for how in ("fork", "spawn", "forkserver"):
        loader = DataLoader(
            Augmented(),
            batch_size=4,
            num_workers=2,
            multiprocessing_context=how,
            collate_fn=collate,
            generator=torch.Generator().manual_seed(1),
            persistent_workers=True,
        )
        for _ in range(2):
            for images, indices in loader:
                found.append((how, indices, exact(model(images).sum().item())))
        streamed = DataLoader(Streamed(), batch_size=2, num_workers=2, multiprocessing_context=how)
        found.append((how, digest(streamed)))
        try:
            list(DataLoader(Failing(), batch_size=4, num_workers=1, multiprocessing_context=how))
        except ValueError as error:
            found.append((how, str(error).splitlines()[-1]))
    report(model, found=found)
