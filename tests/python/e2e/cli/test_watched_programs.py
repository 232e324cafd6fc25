"""``run --watch``: the history of variables, with no edit to the program."""

from __future__ import annotations

import re
import textwrap
import zipapp
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import Outcome, python, shapetrace
from tests.support.times import with_one_time

pytestmark = pytest.mark.e2e

PIPELINE = """
import numpy as np
import sys

def resize(video, size):
    video = video[:, :size, :size]
    return video

class Dataset:
    def transform(self, sample):
        sample["video"] = resize(sample["video"], 4)
        sample["video"] = sample["video"].astype(np.float32)
        sample["video"] /= 255
        mask = sample["video"] > 0.5
        return sample, mask

if __name__ == "__main__":
    video = np.zeros((73, 8, 8), dtype=np.uint8)
    video[:] = 3
    sample, mask = Dataset().transform({"video": video})
    video = sample["video"].transpose(2, 0, 1)
    print("torch" in sys.modules)
"""


def watch(
    tmp_path: Path, source: str, names: str, *options: str, arguments: tuple[str, ...] = ()
) -> Outcome:
    (tmp_path / "script.py").write_text(textwrap.dedent(source).lstrip("\n"))
    outcome = shapetrace("run", "--watch", names, *options, "script.py", *arguments, cwd=tmp_path)
    assert outcome.code == 0, outcome.stderr
    return outcome


def history(outcome: Outcome) -> list[str]:
    """The lines of the history, without the times."""
    lines = [line for line in outcome.stdout.splitlines() if re.match(r"(\[.*\] )?[│┌├└]", line)]
    return [with_one_time(line).removesuffix("  1 ms") for line in lines]


def changes(outcome: Outcome) -> list[str]:
    """What has changed where, in whatever call."""
    found = [re.search(r"├─ (\S+\.py:\d+  .*)", line) for line in history(outcome)]
    return [match[1] for match in found if match]


def test_a_pipeline_of_arrays(tmp_path: Path) -> None:
    outcome = watch(tmp_path, PIPELINE, "video,mask")
    assert history(outcome) == [
        "┌── script.py",
        "├─ script.py:17  video  u8[73,8,8]",
        "├─ script.py:18  video  u8[73,8,8]  values changed",
        "│   ┌── Dataset.transform  script.py:9, called from script.py:19",
        "│   ├─ in   sample  {video: u8[73,8,8]}",
        "│   │   ┌── resize  script.py:4, called from Dataset.transform script.py:10",
        "│   │   ├─ in   video  u8[73,8,8]",
        "│   │   ├─ in   size  4",
        "│   │   ├─ script.py:5  video  u8[73,8,8] → u8[73,4,4]",
        "│   │   └─ out  u8[73,4,4]",
        "│   ├─ script.py:13  mask  bool[73,4,4]",
        "│   └─ out  ({video: f32[73,4,4]}, bool[73,4,4])",
        "├─ script.py:19  mask  bool[73,4,4]",
        "├─ script.py:20  video  u8[73,8,8] → f32[4,73,4]",
        "└─ ended",
    ]
    assert outcome.stdout.splitlines().count("False") == 1
    assert outcome.stderr == ""


def test_what_is_in_a_variable(tmp_path: Path) -> None:
    outcome = watch(tmp_path, PIPELINE, 'sample["video"]')
    assert changes(outcome) == [
        'script.py:10  sample["video"]  u8[73,8,8] → u8[73,4,4]',
        'script.py:11  sample["video"]  u8[73,4,4] → f32[73,4,4]',
        'script.py:12  sample["video"]  f32[73,4,4]  values changed',
        'script.py:19  sample["video"]  f32[73,4,4]',
    ]


@pytest.mark.parametrize(
    ("names", "functions"),
    [
        ("resize:video", ["resize"]),
        ("script.resize:video", ["resize"]),
        ("__main__.resize:video", ["resize"]),
        ("<module>:video", ["script.py"]),
        ("Dataset.transform:mask,resize:video", ["Dataset.transform", "resize"]),
        ("transform:mask", ["Dataset.transform"]),
    ],
)
def test_only_in_a_function(names: str, functions: list[str], tmp_path: Path) -> None:
    if names.startswith("script."):
        (tmp_path / "script.py").write_text(PIPELINE)
        (tmp_path / "run.py").write_text(
            "import numpy\nfrom script import resize\nresize(numpy.ones((2, 8, 8)), 4)\n"
        )
        outcome = shapetrace("run", "--watch", names, "run.py", cwd=tmp_path)
    else:
        outcome = watch(tmp_path, PIPELINE, names)
    assert outcome.stderr == ""
    began = [re.search(r"┌── (\S+)", line) for line in history(outcome)]
    assert [match[1] for match in began if match] == functions


def test_names_that_bring_nothing_are_told_with_the_nearest(tmp_path: Path) -> None:
    names = "vidoe,qqq,resize:mask,resise:video,sample['vido'],never:x,other"
    source = PIPELINE + "\ndef never(x):\n    other = x\n    return other\n"
    outcome = watch(tmp_path, source, names)
    assert outcome.stderr.splitlines() == [
        "shapetrace: nothing that was loaded assigns 'vidoe'; did you mean video (script.py:17)?",
        "shapetrace: nothing that was loaded assigns 'qqq'",
        "shapetrace: resize does not assign 'mask'",
        "shapetrace: no function 'resise' was loaded; did you mean resize?",
        "shapetrace: nothing that was loaded mentions \"sample['vido']\" where sample has a value",
        "shapetrace: 'never:x' is assigned in never (script.py:23), of which no call was seen",
        "shapetrace: 'other' is assigned in never (script.py:23), of which no call was seen",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "name what to watch: video, transform:video or \"sample['video']\""),
        ("a b", "'a b' is no name of a variable"),
        ("f(x)", "'f(x)' has more in it than names"),
        ("1x:y", "cannot watch '1x:y': before the colon there is a function"),
    ],
)
def test_what_cannot_be_watched(words: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('never')")
    outcome = shapetrace("run", "--watch", words, "script.py", cwd=tmp_path)
    assert outcome.code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith(f"shapetrace: {said}")


def test_installed_packages_are_watched_where_that_is_asked_for(tmp_path: Path) -> None:
    source = "import colorsys\ncolorsys.rgb_to_hsv(0.1, 0.2, 0.3)\n"
    assert "nothing that was loaded assigns 'maxc'" in watch(tmp_path, source, "maxc").stderr
    outcome = watch(tmp_path, source, "maxc", "--watch-in", "colorsys,json")
    assert any("┌── rgb_to_hsv  colorsys.py" in line for line in history(outcome))


def test_the_tree_follows_where_it_is_asked_for(tmp_path: Path) -> None:
    source = """
    import torch
    def work(model, x):
        x = x * 2
        return model(x)
    work(torch.nn.Linear(3, 4), torch.ones(2, 3))
    """
    outcome = watch(tmp_path, source, "x")
    assert changes(outcome) == ["script.py:3  x  f32[2,3]  values changed"]
    assert "Linear  f32" not in outcome.stdout
    assert outcome.stderr == ""
    with_tree = watch(tmp_path, source, "x", "--view", "tree", "-o", "trace.json")
    assert changes(with_tree) == changes(outcome)
    assert re.search(r"Linear\b.*f32\[2,4\]", with_tree.stdout)
    assert (tmp_path / "trace.json").exists()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("how", [("script.py",), ("-m", "script")])
def test_processes_of_the_program(method: str, how: tuple[str, ...], tmp_path: Path) -> None:
    source = """
    import multiprocessing, sys
    def work(number):
        mask = [number]
        mask = tuple(mask)
        return mask
    if __name__ == "__main__":
        with multiprocessing.get_context(sys.argv[1]).Pool(1) as pool:
            print(pool.map(work, [5, 6]))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(source).lstrip("\n"))
    outcome = shapetrace("run", "--watch", "mask,vask", *how, method, cwd=tmp_path)
    assert outcome.code == 0
    assert "[(5,), (6,)]" in outcome.stdout
    lines = [line for line in history(outcome) if "mask" in line]
    assert [re.sub(r"^.*├─ ", "", line) for line in lines] == [
        "script.py:3  mask  [5]",
        "script.py:4  mask  [5] → (5,)",
        "script.py:3  mask  [6]",
        "script.py:4  mask  [6] → (6,)",
    ]
    assert all(line.startswith("[") and "PoolWorker-" in line for line in lines)
    said = outcome.stderr.splitlines()
    assert said[-1].startswith("shapetrace: nothing that was loaded assigns 'vask'; did you mean")
    assert len(said) == (1 if method == "fork" else 2)


def test_what_a_server_of_forks_loads(tmp_path: Path) -> None:
    (tmp_path / "loaded.py").write_text("mask = 1\ndef work(mask):\n    return mask\n")
    source = """
    import multiprocessing, loaded
    if __name__ == "__main__":
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["loaded"])
        with context.Pool(1) as pool:
            print(pool.map(loaded.work, [5]))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(source).lstrip("\n"))
    outcome = shapetrace("run", "--watch", "mask", "script.py", cwd=tmp_path)
    assert outcome.code == 0
    assert "[5]" in outcome.stdout
    assert "[fork server] ├─ loaded.py:1  mask  1" in outcome.stdout
    assert re.search(r"^\[ForkServerPoolWorker-1\] ├─ in +mask +5$", outcome.stdout, re.M)


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_data_loader(context: str, tmp_path: Path) -> None:
    source = f"""
    import torch
    from torch.utils.data import DataLoader, Dataset
    class Videos(Dataset):
        def __len__(self):
            return 2
        def __getitem__(self, index):
            video = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
            video = video.permute(1, 0, 2, 3)
            video = video.float() / 255
            return video
    if __name__ == "__main__":
        loader = DataLoader(Videos(), num_workers=1, multiprocessing_context={context!r})
        for batch in loader:
            print(tuple(batch.shape))
    """
    outcome = watch(tmp_path, source, "video")
    assert outcome.stdout.count("(1, 3, 4, 8, 8)") == 2
    assert changes(outcome) == 2 * [
        "script.py:7  video  u8[4,3,8,8]",
        "script.py:8  video  u8[4,3,8,8] → u8[3,4,8,8]",
        "script.py:9  video  u8[3,4,8,8] → f32[3,4,8,8]",
    ]


def test_a_comprehensions_variable_is_another(tmp_path: Path) -> None:
    source = """
    def g():
        x = None
        [x for x in range(3)]
        return x
    g()
    """
    assert changes(watch(tmp_path, source, "x")) == ["script.py:2  x  None"]


def test_threads_generators_and_async_functions(tmp_path: Path) -> None:
    source = """
    import asyncio, threading
    def generate(x):
        for x in range(2):
            yield x
    async def wait(x):
        x = x + 1
        await asyncio.sleep(0)
        x = x + 1
        return x
    def thread():
        x = "in a thread"
    list(generate(0))
    async def both():
        await asyncio.gather(wait(10), wait(20))
    asyncio.run(both())
    thread = threading.Thread(target=thread, name="worker")
    thread.start()
    thread.join()
    """
    outcome = watch(tmp_path, source, "x")
    found = changes(outcome)
    assert found[0] == "script.py:3  x  0 → 1"
    for line in ("6  x  10 → 11", "8  x  11 → 12", "6  x  20 → 21", "8  x  21 → 22"):
        assert f"script.py:{line}" in found
    assert any(line.startswith("[worker]") and "'in a thread'" in line for line in history(outcome))


def test_what_is_followed_is_what_it_was(tmp_path: Path) -> None:
    source = """
    import inspect, pickle, copy, functools, traceback, sys
    def keep(function):
        @functools.wraps(function)
        def inner(*x):
            return function(*x)
        return inner
    @keep
    def f(x, *, y: int = 1) -> int:
        "Text."
        x = x + y
        return x
    class Point:
        def __init__(self, x):
            self.x = x
        @property
        def double(self):
            x = self.x * 2
            return x
    def fails(x):
        x = 0
        return (1 +
                2 / x)
    print(inspect.signature(f), f.__doc__, f.__name__, f.__wrapped__.__qualname__)
    print(inspect.getsource(f))
    print(pickle.loads(pickle.dumps(f)) is f, copy.deepcopy(f) is f)
    print(pickle.loads(pickle.dumps(Point(3))).double)
    print(f.__wrapped__.__code__.co_varnames, f.__wrapped__.__code__.co_firstlineno)
    try:
        fails(1)
    except ZeroDivisionError:
        traceback.print_exc(file=sys.stdout)
    print(list(vars()))
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(source).lstrip("\n"))
    plain = python("script.py", cwd=tmp_path)
    outcome = shapetrace("run", "--watch", "x", "script.py", cwd=tmp_path)
    assert plain.code == outcome.code == 0
    own = [line for line in outcome.stdout.splitlines() if not re.match(r"[│┌├└]", line)]
    assert own == plain.stdout.splitlines()
    assert "script.py:10  x  3 → 4" not in changes(outcome)
    assert "script.py:17  x  6" in changes(outcome)


def test_code_in_archives_and_packages_of_all_kinds(tmp_path: Path) -> None:
    (tmp_path / "archive" / "inside").mkdir(parents=True)
    (tmp_path / "archive" / "__main__.py").write_text("from inside.deep import f\nf(1)\n")
    (tmp_path / "archive" / "inside" / "deep.py").write_text(
        "def f(x):\n    x = [x]\n    return x\n"
    )
    zipapp.create_archive(tmp_path / "archive", tmp_path / "archive.pyz")
    for program in ("archive.pyz", "archive"):
        outcome = shapetrace("run", "--watch", "x", program, cwd=tmp_path)
        assert outcome.code == 0
        assert changes(outcome) == ["deep.py:2  x  1 → [1]"]
        assert outcome.stderr == ""


def test_what_is_compiled_is_kept_without_our_hooks(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("def f(x):\n    x = [x]\n    return x\n")
    (tmp_path / "script.py").write_text("import module\nprint(module.f(1))\n")
    writing = {"PYTHONDONTWRITEBYTECODE": ""}
    kept: list[bytes] = []
    for _ in range(2):
        outcome = shapetrace("run", "--watch", "x", "script.py", cwd=tmp_path, extra=writing)
        assert changes(outcome) == ["module.py:2  x  1 → [1]"]
        kept += [file.read_bytes() for file in (tmp_path / "__pycache__").glob("module*.pyc")]
    for file in (tmp_path / "__pycache__").glob("*"):
        file.unlink()
    assert python("script.py", cwd=tmp_path, extra=writing).stdout == "[1]\n"
    kept += [file.read_bytes() for file in (tmp_path / "__pycache__").glob("module*.pyc")]
    assert len(kept) == 3
    assert len(set(kept)) == 1


def test_a_function_that_is_tracked_by_its_own_decorator(tmp_path: Path) -> None:
    source = """
    from shapetrace import var_tracker
    @var_tracker("y")
    def f(x):
        x = [x]
        y = x
        return y
    f(1)
    """
    outcome = watch(tmp_path, source, "x")
    assert "script.py:4  x  1 → [1]" in changes(outcome)
    assert "script.py:5  y  [1]" in changes(outcome)


def test_what_is_compiled_is_stepped_around_and_that_is_said(tmp_path: Path) -> None:
    source = """
    import sys
    import torch
    def scaled(x):
        hidden = x * 2
        return hidden
    @torch.compiler.disable
    def alone(x):
        hidden = x + 1
        return hidden
    alone(torch.ones(3))
    compiled = torch.compile(scaled, backend="eager")
    for _ in range(int(sys.argv[1])):
        compiled(torch.ones(2))
    """
    told = (
        "shapetrace: stepped around what torch.compile has compiled (3 calls of it); "
        "set TORCH_COMPILE_DISABLE=1 to switch compiling off"
    )
    outcome = watch(tmp_path, source, "hidden", arguments=("3",))
    assert outcome.stderr.splitlines()[-1:] == [told]
    assert changes(outcome) == ["script.py:8  hidden  f32[3]"]
    assert "torch.compile" not in watch(tmp_path, source, "hidden", arguments=("0",)).stderr


def test_an_error_ends_the_calls_in_the_history(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def f(x):\n    x = 0\n    return 1 / x\nf(2)\n")
    outcome = shapetrace("run", "--watch", "x", "script.py", cwd=tmp_path)
    assert outcome.code == 1
    assert outcome.stderr == python("script.py", cwd=tmp_path).stderr
    assert history(outcome) == [
        "┌── f  script.py:1, called from script.py:4",
        "├─ in   x  2",
        "├─ script.py:2  x  2 → 0",
        "└─ raised at script.py:3",
    ]


def test_nothing_is_imported_for_it_that_is_large(tmp_path: Path) -> None:
    source = """
    import sys
    x = 1
    print(sorted({"torch", "numpy", "rich", "asyncio", "multiprocessing"} & sys.modules.keys()))
    """
    assert "[]" in watch(tmp_path, source, "x").stdout


def test_code_that_is_run_again_is_followed_again(tmp_path: Path) -> None:
    source = """
    import importlib, sys
    sys.path.insert(0, "")
    import module
    module.f(1)
    importlib.reload(module).f(2)
    """
    (tmp_path / "module.py").write_text("def f(x):\n    x = [x]\n    return x\n")
    found = changes(watch(tmp_path, source, "x"))
    assert found == ["module.py:2  x  1 → [1]", "module.py:2  x  2 → [2]"]


def test_a_variable_that_was_deleted_is_new_again(tmp_path: Path) -> None:
    source = """
    def f():
        x = 1
        del x
        x = 1
    f()
    """
    assert changes(watch(tmp_path, source, "x")) == ["script.py:2  x  1", "script.py:4  x  1"]
