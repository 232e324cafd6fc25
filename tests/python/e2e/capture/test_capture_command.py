"""``shapetrace capture``: programs as they are, and the values of their models."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.python.e2e.capture.ranks import result, start
from tests.python.e2e.cli.programs import Outcome, environment, python, shapetrace

pytestmark = pytest.mark.e2e

TRAIN = """
    import os, signal, sys
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

        def forward(self, x):
            for layer in self.layers:
                hidden = layer(x)
                x = hidden.relu()
            return x

    torch.manual_seed(0)
    scale, model, loss_of = nn.Softmax(dim=-1), Net(), nn.MSELoss()
    for step in range(6):
        model.zero_grad()
        loss = loss_of(model(scale(torch.randn(3, 4))), torch.zeros(3, 4))
        loss.backward()
        # No optimizer of torch's, with which it imports TorchDynamo for seconds.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    model.eval()
    model(torch.zeros(1, 4))
    print(f"{loss.item():.6f}", torch.rand(1).item(), sys.argv)
"""

TABLE = """\
captured: 3 names, 28 values, iterations 1–6, 1.2 KB

forward.hidden  f32[1..3,4]  ×14   …
"""


def write(folder: Path, program: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(program), "utf-8")
    return path


def capture(folder: Path, *arguments: str) -> Outcome:
    return shapetrace("capture", *arguments, cwd=folder, extra={"COLUMNS": "80"})


def read(path: Path) -> dict[str, tuple[list[int], tuple[int, ...]]]:
    """Iterations and shape of each name in a file."""
    import h5py

    with h5py.File(path) as file:
        return {
            name: (file[f"{name}_iterations"][()].tolist(), file[name].shape)
            for name in file
            if not name.endswith(("_iterations", "_ranks", "_shapes"))
        }


def test_a_table_follows_what_the_program_prints(tmp_path: Path) -> None:
    write(tmp_path, TRAIN)
    plain = python("train.py", "--epochs", "1", cwd=tmp_path)
    outcome = capture(
        tmp_path, "--values", "layers.*.forward", "--values", "forward.hidden", "train.py",
        "--epochs", "1",
    )  # fmt: skip
    assert outcome.code == 0
    assert outcome.stdout.startswith(plain.stdout)
    lines = outcome.stdout.removeprefix(plain.stdout).splitlines()
    assert lines[0].startswith("captured: 3 names, 28 values, iterations 1–6")
    names = [line.split()[:3] for line in lines[2::2]]
    assert names == [
        ["forward.hidden", "f32[1..3,4]", "×14"],
        ["layers.0.forward", "f32[1..3,4]", "×7"],
        ["layers.1.forward", "f32[1..3,4]", "×7"],
    ]
    assert outcome.stderr == "shapetrace: capturing from Net\n"


def test_a_file_holds_what_was_captured(tmp_path: Path) -> None:
    write(tmp_path, TRAIN)
    outcome = capture(
        tmp_path, "--train-only", "--trace-interval", "2", "--gathering-interval", "4",
        "--values", "forward.x", "-o", "run.h5", "train.py",
    )  # fmt: skip
    assert (outcome.code, outcome.stderr) == (
        0,
        "shapetrace: capturing from Net\nshapetrace: wrote run.h5\n",
    )
    assert list(read(tmp_path / "run.h5")) == ["forward.x"]
    shown = shapetrace("show", "run.h5", cwd=tmp_path, extra={"COLUMNS": "80"})
    assert "iterations 2–6" in shown.stdout
    assert "forward.x  f32[3,4]  ×9" in shown.stdout


@pytest.mark.parametrize("place", [0, 1])
def test_a_program_that_changes_its_folder(tmp_path: Path, place: int) -> None:
    program = TRAIN.replace("print(", "os.chdir('elsewhere')\n    print(", 1)
    if place == 0:
        program = TRAIN.replace("torch.manual_seed", "os.chdir('elsewhere')\n    torch.manual_seed")
    write(tmp_path, program)
    (tmp_path / "elsewhere").mkdir()
    outcome = capture(tmp_path, "--values", "forward", "-o", "run.h5", "train.py")
    assert (outcome.code, outcome.stderr) == (
        0,
        "shapetrace: capturing from Net\nshapetrace: wrote run.h5\n",
    )
    assert list(read(tmp_path / "run.h5")) == ["forward"]


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    write(tmp_path, TRAIN)
    (tmp_path / "run.h5").write_text("precious")
    arguments = ("--values", "forward", "-o", "run.h5")
    outcome = capture(tmp_path, *arguments, "train.py")
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "run.h5 exists already; --overwrite replaces it" in outcome.stderr
    assert (tmp_path / "run.h5").read_text() == "precious"
    assert capture(tmp_path, *arguments, "--overwrite", "train.py").code == 0
    assert list(read(tmp_path / "run.h5")) == ["forward"]


def test_a_file_of_a_rank_that_is_there_is_kept(tmp_path: Path) -> None:
    write(tmp_path, TRAIN)
    (tmp_path / "run.rank0.h5").write_text("precious")
    arguments = ("--values", "forward", "--shards", "-o", "run.h5")
    outcome = capture(tmp_path, *arguments, "train.py")
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "run.rank0.h5 exists already; --overwrite replaces it" in outcome.stderr
    assert (tmp_path / "run.rank0.h5").read_text() == "precious"
    assert capture(tmp_path, *arguments, "--overwrite", "train.py").code == 0


ENDINGS = {
    "error": "1 / 0",
    "exit": "sys.exit(7)",
    "exit_with_text": "sys.exit('it went wrong')",
    "leave": "os._exit(5)",
    "interrupt": "os.kill(os.getpid(), signal.SIGINT)",
    "thread": "import threading; threading.Thread(target=lambda: model(torch.ones(1, 4))).start()",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_as_by_python(tmp_path: Path, ending: str) -> None:
    write(tmp_path, textwrap.dedent(TRAIN) + ENDINGS[ending] + "\n")
    plain = python("train.py", cwd=tmp_path)
    outcome = capture(tmp_path, "--values", "forward", "-o", "run.h5", "train.py")
    assert outcome.code == plain.code
    assert outcome.stdout == plain.stdout
    said = [line for line in outcome.stderr.splitlines() if not line.startswith("shapetrace: ")]
    assert said == plain.stderr.splitlines()
    with_thread = 8 if ending == "thread" else 7
    assert read(tmp_path / "run.h5")["forward"][1][0] >= 1
    assert len(read(tmp_path / "run.h5")["forward"][0]) == with_thread


def test_ctrl_c_keeps_what_was_captured(tmp_path: Path) -> None:
    program = (
        textwrap.dedent(TRAIN) + "print('ready', flush=True)\nwhile True: model(torch.ones(1, 4))\n"
    )
    write(tmp_path, program)
    command = [sys.executable, "-m", "shapetrace", "capture", "--values", "forward", "train.py"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment({"PYTHONUNBUFFERED": "1"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while "ready" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert stdout.startswith("captured: 1 name, ")
    assert "KeyboardInterrupt" in stderr


def test_a_killed_program_leaves_all_up_to_the_last_gather(tmp_path: Path) -> None:
    write(tmp_path, textwrap.dedent(TRAIN) + "os.kill(os.getpid(), signal.SIGKILL)\n")
    outcome = capture(
        tmp_path, "--values", "layers.0", "--gathering-interval", "4", "-o", "run.h5", "train.py"
    )
    assert outcome.code == -signal.SIGKILL
    shown = shapetrace("show", "run.h5", cwd=tmp_path)
    assert "layers.0  f32[3,4]  ×4" in shown.stdout


def test_a_module_by_its_name(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    write(package, TRAIN, "__main__.py")
    outcome = capture(tmp_path, "--values", "forward", "-m", "package", "-x")
    assert outcome.code == 0
    assert "'-x'" in outcome.stdout
    assert "forward  f32[1..3,4]  ×7" in outcome.stdout


TWO_MODELS = """
    import torch
    from torch import nn

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.Linear(2, 3)

        def forward(self, z):
            return self.up(z)

    class Discriminator(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Linear(3, 1)

        def forward(self, x):
            score = self.down(x)
            return score.sigmoid()

    generate, judge = Generator(), Discriminator()
    for _ in range(3):
        judge(generate(torch.ones(1, 2)))
"""


@pytest.mark.parametrize(
    ("path", "chosen", "shown"),
    [
        ("up.forward", "Generator", "up.forward  f32[1,3]  ×3"),
        ("forward.score", "Discriminator", "forward.score  f32[1,1]  ×3"),
        ("forward", "Generator", "forward  f32[1,3]  ×3"),
    ],
)
def test_the_model_is_the_first_that_has_the_values(
    tmp_path: Path, path: str, chosen: str, shown: str
) -> None:
    write(tmp_path, TWO_MODELS)
    outcome = capture(tmp_path, "--values", path, "train.py")
    assert f"shapetrace: capturing from {chosen}\n" in outcome.stderr
    assert shown in outcome.stdout


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            TWO_MODELS,
            (
                "nothing was captured: no called module has these values\n"
                "shapetrace: 'scores' matches nothing: the model (Generator) has no 'scores'; "
                "nearest there: forward, up\n"
                "shapetrace: 'scores' matches nothing: the model (Discriminator) has no 'scores'; "
                "nearest there: forward, down"
            ),
        ),
        ("import torch", "nothing was captured: no module with parameters was called"),
        ("print()", "nothing to capture: the program did not import torch"),
    ],
)
def test_why_nothing_was_captured(tmp_path: Path, program: str, said: str) -> None:
    write(tmp_path, program)
    outcome = capture(tmp_path, "--values", "scores", "train.py")
    assert outcome.code == 0
    assert outcome.stderr == f"shapetrace: {said}\n"


INTERRUPTED = """
    import signal, sys
    import torch
    from torch import nn

    class Late(Exception):
        pass

    def handle(number, frame):
        raise Late

    def interrupt(frame, event, argument):
        if event == "call" and frame.f_code.co_qualname == sys.argv[2]:
            signal.raise_signal(signal.SIGUSR1)

    signal.signal(signal.SIGUSR1, handle)
    model, x, late = nn.Linear(3, 3), torch.ones(2, 3), 0
    for call in range(5):
        try:
            if call < int(sys.argv[1]):
                sys.setprofile(interrupt)
            model(x)
        except Late:
            late += 1
        finally:
            sys.setprofile(None)
    print(late)
"""


@pytest.mark.parametrize(
    "place",
    ["ModelFinder._is_wanted", "H5PYSaverCallback.__init__", "follow", "ModelTracer.__enter__"],
)
def test_capturing_begins_as_soon_as_no_exception_of_the_programs_comes(
    tmp_path: Path, place: str
) -> None:
    write(tmp_path, INTERRUPTED)
    arguments = ("--values", "forward", "-o", "run.h5", "train.py")
    outcome = capture(tmp_path, *arguments, "3", place)
    assert outcome.stdout == "3\n"
    assert outcome.stderr == "shapetrace: capturing from Linear\nshapetrace: wrote run.h5\n"
    assert outcome.code == 0
    (tmp_path / "run.h5").unlink()
    outcome = capture(tmp_path, *arguments, "5", place)
    assert outcome.stdout == "5\n"
    assert outcome.stderr == (
        "shapetrace: nothing was captured: each time when capturing was to begin, an exception "
        "arrived from a signal handler or another thread\n"
    )
    assert outcome.code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--values", "a..b", "train.py"], "shapetrace: path 'a..b', character 3"),
        (["--values", "x", "--shards", "train.py"], "shapetrace: --shards needs a file"),
        (["--values", "x", "-o", "no/where.h5", "train.py"], "shapetrace: cannot write no/where"),
        (["train.py"], "the following arguments are required: --values"),
        (["--values", "x"], "name a program to run"),
        (["--values", "x", "missing.py"], "can't open file"),
        (["--values", "x", "--train-only", "--eval-only", "train.py"], "not allowed with"),
    ],
)
def test_what_cannot_be_is_said_before_the_program_runs(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    write(tmp_path, "print('ran')")
    outcome = capture(tmp_path, *arguments)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert said in outcome.stderr


DISTRIBUTED = """
    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    for step in range(4):
        model(torch.full((1, 2), 10.0 * rank + step)).sum().backward()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
"""


@pytest.mark.parametrize("shards", [False, True])
def test_under_torchrun(tmp_path: Path, shards: bool) -> None:
    import h5py

    write(tmp_path, DISTRIBUTED)
    where = ["--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    own = ["--values", "0.forward.input", "-o", "run.h5", *(["--shards"] if shards else [])]
    command = ["-m", "torch.distributed.run", *where, "--nproc-per-node=2"]
    capturing = ["-m", "shapetrace", "capture", *own, "train.py"]
    outcome = result(start([sys.executable, *command, *capturing], tmp_path))
    assert outcome.code == 0, outcome.stderr
    assert outcome.stderr.count("capturing from Sequential") == 1
    with h5py.File(tmp_path / "run.h5") as file:
        values = file["0.forward.input"][()].reshape(8, 2)[:, 0].tolist()
        ranks = file["0.forward.input_ranks"][()].reshape(-1).tolist()
    pairs = sorted(zip(ranks, values, strict=True))
    assert pairs == [(rank, 10.0 * rank + step) for rank in (0, 1) for step in range(4)]
    assert len(list(tmp_path.glob("run.rank*.h5"))) == (2 if shards else 0)


IN_MODES = """
    import torch
    from torch import nn
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.count += 1
            return function(*args, **(kwargs or {}))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 4)

        def forward(self, x):
            scale = 2.5
            return self.linear(x) * scale

    model, x = Net(), torch.zeros(2, 3)
    with Count() as counted:
        model(x)
    print(counted.count, len(make_fx(lambda given: model(given))(x).graph.nodes))
    with torch.device("meta"):
        model(torch.zeros(2, 3, device="cpu"))
"""


@pytest.mark.parametrize("output", [(), ("-o", "run.h5")])
def test_modes_and_graphs_of_the_program_hold_nothing_of_ours(
    tmp_path: Path, output: tuple[str, ...]
) -> None:
    write(tmp_path, IN_MODES)
    paths = ("--values", "forward", "--values", "forward.scale")
    plain = python("train.py", cwd=tmp_path)
    outcome = capture(tmp_path, *paths, *output, "train.py")
    assert outcome.stdout.startswith(plain.stdout)
    assert plain.stdout.split() == ["3", "7"]
    assert output or "always 2.5" in outcome.stdout


def test_a_model_goes_as_it_does_without_us(tmp_path: Path) -> None:
    program = """
        import gc, weakref
        import torch
        from torch import nn

        for _ in range(3):
            model = nn.Sequential(nn.Linear(3, 4))
            model(torch.ones(1, 3))
            references = [weakref.ref(each) for each in (model, *model.parameters())]
            del model
            gc.collect()
            print([reference() is None for reference in references])
    """
    write(tmp_path, program)
    plain = python("train.py", cwd=tmp_path)
    outcome = capture(tmp_path, "--values", "forward.self.0.weight", "train.py")
    printed, _, table = outcome.stdout.partition("captured: ")
    assert printed == plain.stdout
    assert table.startswith("1 name, 1 value, iteration 1, ")
