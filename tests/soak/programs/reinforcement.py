"""A policy gradient loop on gymnasium's CartPole, with a timeout by SIGALRM around each episode."""

import signal
import warnings

warnings.simplefilter("ignore")

import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from state import exact, report  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributions import Categorical  # noqa: E402


class TooSlow(Exception):
    pass


def too_slow(number, frame):
    raise TooSlow


signal.signal(signal.SIGALRM, too_slow)
torch.manual_seed(7)
np.random.seed(7)
environment = gymnasium.make("CartPole-v1", max_episode_steps=60)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
returns = []
for episode in range(8):
    signal.alarm(120)
    try:
        state, _ = environment.reset(seed=episode)
        kept, rewards, over = [], [], False
        while not over:
            choice = Categorical(logits=policy(torch.as_tensor(state)))
            action = choice.sample()
            kept.append(choice.log_prob(action))
            state, reward, ended, cut, _ = environment.step(action.item())
            rewards.append(reward)
            over = ended or cut
        discounted = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        loss = -(torch.stack(kept) * (discounted - discounted.mean())).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        returns.append(exact(sum(rewards)))
    except TooSlow:
        returns.append("timeout")
    finally:
        signal.alarm(0)
report(policy, returns=returns)
