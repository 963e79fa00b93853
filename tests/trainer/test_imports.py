"""What importing the trainer costs, and what it must not do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

REPOSITORY_PATH = Path(__file__).resolve().parents[2]


def say(code: str) -> str:
    """Run a program in a fresh process; gives what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=REPOSITORY_PATH,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_command_line_is_read_before_anything_large_is_imported() -> None:
    """A bad request is refused at once, and shards are fetched while TensorFlow is imported."""
    found = say("""
        import sys, trainer.task
        large = {"tensorflow", "tf_keras", "keras", "numpy", "pyarrow", "pandas", "pydantic", "google.cloud"}
        print(sorted(large & set(sys.modules)))
    """)
    assert found == "[]\n"


def test_importing_every_module_does_nothing() -> None:
    """No device is touched, no thread started, nothing printed."""
    found = say("""
        import importlib, pkgutil, threading, trainer
        for module in pkgutil.walk_packages(trainer.__path__, "trainer."):
            importlib.import_module(module.name)
        from tensorflow.python.eager import context
        print(context.context()._initialized, threading.active_count())
    """)
    assert found == "False 1\n"


def test_one_keras_is_imported() -> None:
    """TensorFlow would import Keras 3 beside `tf_keras`."""
    found = say("""
        import sys
        from trainer.telemetry.tensorflow_import import import_tensorflow
        import_tensorflow()
        import trainer.training.job
        print([name for name in ("tensorflow", "tf_keras", "keras") if name in sys.modules])
    """)
    assert found == "['tensorflow', 'tf_keras']\n"
