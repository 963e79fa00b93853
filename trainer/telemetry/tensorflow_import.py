"""TensorFlow is imported here first, so that a job's log begins with what the job says.

Comes in: nothing. Goes out: TensorFlow in `sys.modules`; what it said that is worth a line, on standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

_NOISE = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog\(\)|[IW]\d{4} .*(oneDNN custom operations are on|"
    rb"This TensorFlow binary is optimized)|To enable the following instructions"
)


def import_tensorflow() -> None:
    """Set what TensorFlow reads when it is imported, and import it.

    It is quiet about its own errors too: of every training it says that an attribute of `map` is unknown, and of
    tensorflow-io's data sets that they lack a method. What is raised stays, and so does what ends the process. It takes
    `tf_keras` for its Keras, and does not import Keras 3 beside it: 0.3 s.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    if "tensorflow" not in sys.modules:
        with _without_noise():
            importlib.import_module("tensorflow")


@contextlib.contextmanager
def _without_noise() -> Iterator[None]:
    """Hold standard error back and give it on without the lines above, which no setting of TensorFlow's turns off."""
    sys.stderr.flush()
    stderr = os.dup(2)
    had_handler = faulthandler.is_enabled()
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        if not had_handler:
            faulthandler.enable(stderr)  # what is held is lost when the import ends the process
        try:
            yield
        finally:
            if not had_handler:
                faulthandler.disable()
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            held.seek(0)
            os.write(2, b"".join(line for line in held if not _NOISE.match(line)))
