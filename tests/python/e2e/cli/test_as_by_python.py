"""A program run by ``shapetrace run`` says what it says under python, byte for byte."""

from __future__ import annotations

import compileall
import textwrap
import zipapp
from pathlib import Path

import pytest

from tests.python.e2e.cli.programs import (
    NOT_IMPORTED,
    ROOT,
    Outcome,
    by_both,
    without_addresses,
)

pytestmark = pytest.mark.e2e

SURROUNDINGS = """
    import os, sys
    main = sys.modules["__main__"]
    names = {name: type(value) if name == "__builtins__" else value
             for name, value in vars(main).items() if name not in ("os", "sys", "main")}
    print(names, vars(main) is globals())
    print(sys.argv, sys.path[0], sys.orig_argv, sys.flags)
    print(sys.excepthook is sys.__excepthook__, sys.exc_info(), __file__, os.getcwd())
    import threading
    print([thread.name for thread in threading.enumerate()])
    print(threading.excepthook is threading.__excepthook__)
    print("torch" in sys.modules, "rich" in sys.modules, "numpy" in sys.modules)
"""

PROGRAMS = {
    "chained_error": """
        def inner():
            return 1 / 0
        def outer():
            try:
                inner()
            except ZeroDivisionError as error:
                raise ValueError("outer") from error
        outer()
    """,
    "error_in_comprehension": "print([1 / number for number in (1, 0)])",
    "error_group": """
        def one():
            raise ValueError("one")
        errors = []
        try:
            one()
        except ValueError as error:
            errors.append(error)
        raise ExceptionGroup("several", errors)
    """,
    "error_with_notes": """
        error = KeyError("é")
        error.add_note("a note")
        raise error
    """,
    "import_error": "import nothing_of_this_name",
    "error_in_import": """
        from pathlib import Path
        Path("broken_module.py").write_text("def f():\\n    1 / 0\\nf()\\n")
        import broken_module
    """,
    "exit_0": "import sys; sys.exit()",
    "exit_7": "import sys; sys.exit(7)",
    "exit_300": "import sys; sys.exit(300)",
    "exit_text": "import sys; print('before'); sys.exit('it went wrong')",
    "exit_object": "raise SystemExit((1, 2))",
    "exit_in_finally": """
        import sys
        try:
            1 / 0
        finally:
            sys.exit(3)
    """,
    "exit_through_except": """
        import sys
        try:
            sys.exit(4)
        except Exception:
            print("never")
        finally:
            print("tidied up")
    """,
    "leave_at_once": """
        import os
        print("flushed", flush=True)
        os._exit(9)
    """,
    "leave_by_keyword": "import os; os._exit(status=5)",
    "own_excepthook": """
        import sys
        def hook(kind, error, traceback):
            print("hook", kind, error, traceback.tb_frame.f_code.co_name, sys.exc_info())
            print(sys.last_type, sys.last_value is error, sys.last_traceback is traceback)
        sys.excepthook = hook
        1 / 0
    """,
    "failing_excepthook": """
        import sys
        def hook(kind, error, traceback):
            raise RuntimeError("in the hook")
        sys.excepthook = hook
        1 / 0
    """,
    "exiting_excepthook": """
        import sys
        sys.excepthook = lambda *error: sys.exit(11)
        1 / 0
    """,
    "missing_excepthook": "import sys; del sys.excepthook; 1 / 0",
    "interrupt": "raise KeyboardInterrupt",
    "interrupt_by_signal": """
        import atexit, os, signal, sys
        atexit.register(lambda: print("at exit", sys.excepthook is sys.__excepthook__))
        os.kill(os.getpid(), signal.SIGINT)
    """,
    "interrupt_of_own_class": """
        class Stop(KeyboardInterrupt): pass
        raise Stop("own")
    """,
    "interrupt_handled": """
        import os, signal, sys
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            sys.exit(130)
    """,
    "terminated": """
        import os, signal
        print("before", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
    """,
    "termination_handled": """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        os.kill(os.getpid(), signal.SIGTERM)
    """,
    "error_in_thread": """
        import threading
        def work(): 1 / 0
        thread = threading.Thread(target=work, name="worker")
        thread.start(); thread.join()
        print("main goes on")
    """,
    "thread_outlives_main": """
        import threading, time
        main = threading.main_thread()
        def work():
            main.join()
            print("after main", threading.enumerate()[0] is main)
        threading.Thread(target=work).start()
        print("main is over")
    """,
    "joins_all_threads": """
        import threading
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join()
        print(threading.active_count())
    """,
    "exit_handlers": """
        import atexit, sys
        atexit.register(print, "last")
        atexit.register(print, "first")
        atexit.register(lambda: 1 / 0)
        def sees():
            print("main" , sys.modules["__main__"].__name__, kept, sys.argv[1:])
        atexit.register(sees)
        kept = "still here"
        raise ValueError("before the handlers")
    """,
    "finalizers": """
        import sys
        class Loud:
            def __init__(self, name): self.name = name
            def __del__(self): print("gone", self.name, sys is not None)
        held = Loud("global")
        def function(default=Loud("default")): pass
    """,
    "unraisable": """
        class Loud:
            def __del__(self): raise ValueError("in del")
        Loud()
        print("on")
    """,
    "warnings": """
        import warnings
        def deprecated():
            warnings.warn("old", DeprecationWarning, stacklevel=2)
        deprecated()
        warnings.warn("plain")
        import logging
        logging.warning("logged %s", __name__)
    """,
    "stdin": """
        import sys
        print(input(), sys.stdin.readlines())
    """,
    "closed_stdout": """
        import sys
        sys.stdout.close()
    """,
    "buffered_output": """
        import sys
        sys.stdout.write("no newline at the end")
    """,
    "changes_directory": """
        import os
        os.makedirs("elsewhere", exist_ok=True)
        os.chdir("elsewhere")
        print(__file__)
        1 / 0
    """,
    "pickles_itself": """
        import pickle
        class Point:
            def __init__(self): self.x = 3
        print(pickle.loads(pickle.dumps(Point())).x, Point.__module__)
    """,
    "pickles_exits": """
        import os, pickle
        print([pickle.loads(pickle.dumps(f)) is f for f in (os._exit, os.execv, os.execve)])
        print(os._exit.__name__, os.execv.__name__)
    """,
    "fails_to_execute": """
        import os
        try:
            os.execvp("no-such-command", ["no-such-command"])
        except FileNotFoundError:
            print("not found")
        os.execv("/no/such/file", ["file"])
    """,
    "forks": """
        import os, sys
        print("once")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print("child")
            sys.exit(5)
        print("child left with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """,
    "forked_child_raises": """
        import os, sys
        child = os.fork()
        if child == 0:
            1 / 0
        os.waitpid(child, 0)
    """,
    "forked_child_leaves_at_once": """
        import os
        child = os.fork()
        if child == 0:
            os._exit(6)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """,
    "source_with_coding": "# -*- coding: latin-1 -*-\nprint('café')",
    "debug_flags": "print(__debug__, 1 if not __debug__ else 2); assert True",
    "non_ascii_output": "print('größer → ∞')",
    "annotations": "x: int = 3\nprint(__annotations__)",
    "future_import": "from __future__ import annotations\ndef f(x: nothing): pass\nprint(f)",
    "exec_of_code": """
        namespace = {}
        exec("import sys\\nname = sys._getframe().f_code.co_name", namespace)
        print(namespace["name"], __name__)
    """,
    "inspects_its_source": """
        import inspect, sys
        def function(): return 1
        print(inspect.getsource(function), inspect.getsourcefile(function) == __file__)
        print(inspect.getsource(sys.modules["__main__"])[:10])
        print(__loader__.get_source("__main__")[:10])
    """,
    "async_main": """
        import asyncio
        async def main():
            await asyncio.sleep(0)
            raise ValueError("in a task")
        asyncio.run(main())
    """,
    "async_interrupt": """
        import asyncio, os, signal
        async def main():
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        asyncio.run(main())
    """,
}

BROKEN_SOURCES = {
    "open_bracket": b"x = (1,\n",
    "bad_def": b"print('never')\ndef f(:\n",
    "indentation": b"if True:\n  x = 1\n    y = 2\n",
    "tabs": b"if True:\n\tx = 1\n        y = 2\n",
    "open_string": b'x = """abc\n',
    "return_outside": b"return 3\n",
    "bad_escape": b'x = "\\N{no such name}"\n',
    "not_utf8": b'x = 1\ny = "caf\xe9"\n',
    "null_byte": b"x = 1\0\n",
    "unknown_coding": b"# -*- coding: no-such -*-\nx = 1\n",
    "wrong_coding": b'# -*- coding: ascii -*-\nx = "caf\xc3\xa9"\n',
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_script(name: str, tmp_path: Path) -> None:
    source = textwrap.dedent(PROGRAMS[name])
    encoding = "latin-1" if "latin-1" in source else "utf-8"
    (tmp_path / "script.py").write_text(source, encoding=encoding)
    plain, traced = by_both("script.py", "--argument", cwd=tmp_path, stdin="one\ntwo\nthree")
    same(plain, traced, note="" if name == "terminated" else NOT_IMPORTED)


@pytest.mark.parametrize("name", ["chained_error", "exit_text", "interrupt", "own_excepthook"])
def test_module(name: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("import sys; print(sys.argv)")
    (tmp_path / "package" / "module.py").write_text(textwrap.dedent(PROGRAMS[name]))
    same(*by_both("-m", "package.module", "-m", "--view", cwd=tmp_path))


@pytest.mark.parametrize("name", BROKEN_SOURCES)
def test_source_that_cannot_be_compiled(name: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_bytes(BROKEN_SOURCES[name])
    same(*by_both("script.py", cwd=tmp_path))


def test_compiled_file_of_another_python(tmp_path: Path) -> None:
    (tmp_path / "script.pyc").write_bytes(b"\x42\x0d\x0d\x0a" + bytes(12))
    same(*by_both("script.pyc", cwd=tmp_path))


@pytest.mark.parametrize("how", ["script.py", "./script.py", "sub/../script.py", "link.py"])
def test_surroundings_of_a_script(how: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "real.py").write_text(textwrap.dedent(SURROUNDINGS))
    (tmp_path / "script.py").write_text(textwrap.dedent(SURROUNDINGS))
    (tmp_path / "link.py").symlink_to(Path("sub", "real.py"))
    same(*by_both(how, "-o", "value", "--", "-m", cwd=tmp_path))


@pytest.mark.parametrize("flags", [(), ("-P",), ("-O", "-W", "error", "-X", "dev"), ("-B", "-u")])
@pytest.mark.parametrize(
    "arguments",
    [
        ("script.py", "a"),
        ("-m", "module", "a"),
        ("-m", "package"),
        ("folder", "a"),
        ("./folder/",),
        ("archive.pyz", "a"),
        ("compiled.pyc", "a"),
    ],
)
def test_surroundings(arguments: tuple[str, ...], flags: tuple[str, ...], tmp_path: Path) -> None:
    source = textwrap.dedent(SURROUNDINGS)
    (tmp_path / "script.py").write_text(source)
    (tmp_path / "module.py").write_text(source)
    for folder, main in (("package", "__main__.py"), ("folder", "__main__.py")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / main).write_text(source)
    (tmp_path / "package" / "__init__.py").touch()
    zipapp.create_archive(tmp_path / "folder", tmp_path / "archive.pyz")
    (tmp_path / "compiled.py").write_text(source)
    compileall.compile_file(tmp_path / "compiled.py", legacy=True, quiet=1)
    extra = {"PYTHONPATH": f"{ROOT / 'python_backend'}:{tmp_path if '-P' in flags else ''}"}
    plain, traced = by_both(*arguments, cwd=tmp_path, flags=flags, extra=extra)
    assert plain.code == 0
    same(plain, traced)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("arguments", [("script.py",), ("-m", "script")])
def test_multiprocessing(method: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    source = f"""
        import multiprocessing, os, sys, traceback

        class Task:
            def __call__(self):
                print("child", __name__, sys.argv)
                return 1 / 0

        class Refusing:
            def __reduce__(self):
                raise ValueError("not to be pickled")

        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            try:
                context.Process(target=id, args=(Refusing(),)).start()
            except ValueError:
                traceback.print_exc()
            leaving = context.Process(target=os._exit, args=(3,))
            leaving.start()
            leaving.join()
            with context.Pool(1) as pool:
                print(leaving.exitcode, pool.map(abs, [-1, 2]))
            process = context.Process(target=Task())
            process.start()
            process.join()
            print("parent", process.exitcode)
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(source))
    note = NOT_IMPORTED
    if method != "fork":
        note += (
            "shapetrace: 3 processes that the program spawned were not traced; use "
            "shapetrace.trace in their code, or start ranks with torchrun -m shapetrace run\n"
        )
    same(*by_both(*arguments, cwd=tmp_path), note)


def same(plain: Outcome, traced: Outcome, note: str = NOT_IMPORTED) -> None:
    assert without_addresses(traced.stdout) == without_addresses(plain.stdout)
    assert without_addresses(traced.stderr) == without_addresses(plain.stderr) + note
    assert traced.code == plain.code
