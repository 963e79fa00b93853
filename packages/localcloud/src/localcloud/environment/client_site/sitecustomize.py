"""Loaded by every Python that the local cloud's environment variables reach, before its own code.

What variables alone cannot do: aiohttp asks for a proxy only when each session is set to (`trust_env`), so gcloud-aio,
and with it Airflow's deferrable operators, would go to the real hosts. And in a job, `/gcs` would be a folder of this
machine: on Vertex AI it is the buckets, which are not mounted here. A sitecustomize of the environment's own follows.
"""

import errno
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).resolve().parent
_WATCHED = frozenset(("open", "os.mkdir", "os.rename", "os.listdir", "os.scandir", "os.chdir"))
_SESSIONS = "aiohttp.client"


class _TrustEnvironment(MetaPathFinder, Loader):
    """Finds aiohttp's sessions once, and lets them heed https_proxy unless they are set otherwise."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module's own spec, with this loader around its own."""
        if name != _SESSIONS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        self._loader = spec.loader
        spec.loader = self
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Leave it to the module's own loader."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then change the default."""
        self._loader.exec_module(module)
        defaults = module.ClientSession.__init__.__kwdefaults__
        defaults["trust_env"] = True


def _refuse_mounts(event: str, arguments: tuple[object, ...]) -> None:
    if event not in _WATCHED:
        return
    for named in arguments[:2]:
        path = os.fsdecode(named) if isinstance(named, bytes | os.PathLike) else named
        if isinstance(path, str) and (path == "/gcs" or path.startswith("/gcs/")):
            raise OSError(
                errno.ENOTSUP,
                "the local cloud does not mount buckets below /gcs; use the gs:// address, which TensorFlow and"
                " Google's clients open",
                path,
            )


def _load_next() -> None:
    """Load the sitecustomize that this one hides, if there is one."""
    others = [path for path in sys.path if Path(path).resolve() != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("https_proxy"):
    sys.meta_path.insert(0, _TrustEnvironment())
if os.environ.get("CLOUD_ML_JOB_ID"):
    sys.addaudithook(_refuse_mounts)
_load_next()
