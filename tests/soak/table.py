"""Which programs are run, and in which modes: the rows and the columns of docs/reliability.md."""

from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Program:
    """One program, and how it is started without Shapetrace."""

    title: str
    script: str
    python: tuple[str, ...] = ()
    """Options of the interpreter."""
    module: tuple[str, ...] = ()
    """What runs the script in its place: ``-m module`` and the options before the script."""
    ranks: int = 0
    """How many processes torchrun starts of it; 0 without torchrun."""
    exit_code: int = 0
    writes: tuple[str, ...] = ()
    """Files whose bytes are compared too."""
    watched: str = "loss"
    captured: str = "forward"
    unsteady: tuple[str, ...] = ()
    """What of its output differs between two runs without Shapetrace, as regular expressions."""


@dataclass(frozen=True)
class Mode:
    """One way to run a program with Shapetrace."""

    title: str
    command: str
    """``run``, ``capture``, or ``debug`` for the agent under the debugger."""
    options: tuple[str, ...] = field(default=())


CPROFILE = ("-m", "cProfile", "-o", "profile.out")

ROWS = (
    Program("a plain training loop", "plain_training.py"),
    Program(
        "transformers.Trainer",
        "hf_trainer.py",
        unsteady=(r"\{'.*_runtime'.*\}", r".*(it/s|s/it|\?it).*"),
    ),
    Program("accelerate", "accelerate_loop.py"),
    Program("Lightning", "lightning_fit.py"),
    Program("torch-geometric", "geometric_graphs.py"),
    Program("diffusers training step", "diffusion_step.py"),
    Program("generate() of a Llama", "generation.py", watched="prompt"),
    Program("reinforcement learning", "reinforcement.py"),
    Program("DDP on gloo, two ranks", "ddp_gloo.py", ranks=2, writes=("rank0.txt", "rank1.txt")),
    Program(
        "FSDP2 on gloo, two ranks", "fsdp2_gloo.py", ranks=2, writes=("rank0.txt", "rank1.txt")
    ),
    Program("DataLoader: fork, spawn, forkserver", "loaders.py", watched="images"),
    Program("asyncio", "asynchronous.py", watched="batch"),
    Program("threads, timers, signals", "threads_and_timers.py", watched="inputs"),
    Program("torch.compile", "compiled.py"),
    Program(
        "pytest with pytest-timeout",
        "test_with_timeouts.py",
        module=("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"),
        exit_code=1,
        watched="model",
        unsteady=(r"in \d+\.\d+s.*", r"0x[0-9a-f]+"),
    ),
    Program("IPython", "in_ipython.py", module=("-m", "IPython", "--no-banner", "--quick")),
    Program("cProfile", "plain_training.py", module=CPROFILE),
    Program("coverage, C tracer", "plain_training.py", module=("-m", "coverage", "run")),
    Program(
        "coverage, Python tracer",
        "geometric_graphs.py",
        module=("-m", "coverage", "run", "--timid"),
    ),
    Program("python -X importtime", "geometric_graphs.py", python=("-X", "importtime")),
    Program("python -O", "plain_training.py", python=("-O",)),
    Program("skorch, scikit-learn, joblib", "grid_search.py", watched="h"),
    Program("ignite, torchmetrics, einops, torch.func", "ignite_engine.py", watched="tokens"),
    Program("peft, datasets", "adapters.py", unsteady=(r".*(it/s|s/it|\?it).*",)),
    Program("pytorch-metric-learning, tensordict", "embeddings.py", watched="batch"),
    Program("a vision model as timm trains it", "vision_training.py", watched="h"),
)

MODES = (
    Mode("run", "run"),
    Mode("run --passes all", "run", ("--passes", "all")),
    Mode("settled", "run", ("--passes", "all", "--settle-after", "2")),
    Mode("--level aten", "run", ("--passes", "all", "--level", "aten")),
    Mode("--fingerprint", "run", ("--passes", "all", "--fingerprint")),
    Mode("--watch", "run", ("--watch",)),
    Mode("capture", "capture"),
    Mode("debugger", "debug"),
)

DEBUGGER = Mode("debugger without us", "debugpy")
"""What the mode of the debugger is compared with: debugpy has Dynamo compile more frames."""
