"""A classifier of images that was written for 28 × 28 pixels and is given 32 × 32: it raises.

python -m shapetrace run examples/shape_error.py
"""

import torch
from torch import Tensor, nn


class ConvolutionBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(torch.relu(self.norm(self.convolution(x))))


class DigitClassifier(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.blocks = nn.Sequential(ConvolutionBlock(1, 16), ConvolutionBlock(16, 32))
        self.hidden = nn.Linear(32 * 7 * 7, 64)
        self.classify = nn.Linear(64, classes)

    def forward(self, images: Tensor) -> Tensor:
        features = self.blocks(images)
        hidden = torch.relu(self.hidden(features.flatten(start_dim=1)))
        return self.classify(hidden)


def main() -> None:
    torch.manual_seed(0)
    images = torch.rand(4, 1, 32, 32)
    model = DigitClassifier()
    scores = model(images)
    print(scores.argmax(dim=-1))


if __name__ == "__main__":
    main()
