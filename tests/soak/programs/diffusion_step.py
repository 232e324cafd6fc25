"""diffusers: training steps of a UNet with a noise scheduler, EMA, and sampling."""

import warnings

warnings.simplefilter("ignore")

import torch  # noqa: E402
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel  # noqa: E402
from diffusers.training_utils import EMAModel  # noqa: E402
from state import digest, exact, report  # noqa: E402

torch.manual_seed(4)
model = UNet2DModel(
    sample_size=8,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=4,
    attention_head_dim=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
scheduler = DDPMScheduler(num_train_timesteps=50)
average = EMAModel(model.parameters(), decay=0.9)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for _ in range(4):
    images = torch.randn(2, 3, 8, 8)
    noise = torch.randn_like(images)
    steps = torch.randint(0, 50, (2,))
    predicted = model(scheduler.add_noise(images, noise, steps), steps).sample
    loss = torch.nn.functional.mse_loss(predicted, noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    average.step(model.parameters())
    losses.append(exact(loss.item()))
average.copy_to(model.parameters())
pipeline = DDPMPipeline(model, scheduler)
pipeline.set_progress_bar_config(disable=True)
sampled = pipeline(num_inference_steps=3, output_type="np").images
report(model, losses=losses, sampled=digest([torch.from_numpy(sampled)]))
