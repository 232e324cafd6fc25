"""What becomes of a video on its way to a model: NumPy only.

python -m shapetrace run --watch video video_pipeline.py
"""

from __future__ import annotations

import numpy as np

Sample = dict[str, np.ndarray]


def read(frames: int, height: int, width: int) -> np.ndarray:
    """A video as decoders give it: frames of height, width and three colors."""
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (frames, height, width, 3), dtype=np.uint8)


def crop(video: np.ndarray, size: int) -> np.ndarray:
    """The middle of each frame."""
    top, left = ((each - size) // 2 for each in video.shape[1:3])
    return video[:, top : top + size, left : left + size]


def prepare(sample: Sample) -> Sample:
    """A video as models want it."""
    video = sample["video"]
    video = crop(video, 64)
    video = video.transpose(3, 0, 1, 2)
    video = video.astype(np.float32) / 255
    mask = video.mean(axis=0) > 0.5
    return {"video": video, "mask": mask}


if __name__ == "__main__":
    prepared = prepare({"video": read(16, 72, 96)})
    print({name: value.shape for name, value in prepared.items()})
