"""Experiment trackers: Vertex AI Experiments and MLflow, one beside the other, each within a limit of time.

In: `TrackedRun` values. Out: nothing but that a tracker has them. What goes wrong is a `TrackingError`, of whose text
nothing is secret: no task fails for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from retraining.core.errors import RetrainingError, TrackingError
from retraining.core.naming.environments import label_of
from retraining.core.report.tracking.tracked_run import MLFLOW, VERTEX, TrackedRun
from retraining.core.settings import Settings
from retraining.hooks import limits
from retraining.hooks.session import Session, explain

if TYPE_CHECKING:
    from retraining.hooks.experiments import Experiments
    from retraining.hooks.mlflow import Mlflow

DEADLINE_S = 25.0
"""Of a run in one tracker, and of the list of a model's: two of them hold a task up for less than a minute."""
LATER = "The DAG maintain shows the run there later: look at what the message names"

_T = TypeVar("_T")


class _Tracker(Protocol):
    def track(self, run: TrackedRun) -> str: ...

    def digests(self, model: str) -> dict[str, str]: ...


class Trackers:
    """The trackers of the environment, by the words of its setting.

    Args:
        settings: Where they are.
        session: Gives who asks Google Cloud, when it is first asked.
    """

    def __init__(self, settings: Settings, session: Callable[[], Session]) -> None:
        self._settings = settings
        self._session = session

    def track(self, tracker: str, run: TrackedRun) -> str:
        """Bring a run in a tracker to what it is; return what it is called there.

        Args:
            tracker: As in the setting.
            run: Of a model of this environment.

        Raises:
            TrackingError: The tracker did not take it in time, or refused it.
        """
        return self._ask(tracker, lambda hook: hook.track(run))

    def digests(self, tracker: str, model: str) -> dict[str, str]:
        """Return what a tracker was last told of each run of a model: digests by run key; empty: not all of one.

        Raises:
            TrackingError: It gave no answer in time, or refused.
        """
        return self._ask(tracker, lambda hook: hook.digests(model))

    def _ask(self, tracker: str, question: Callable[[_Tracker], _T]) -> _T:
        """Ask within the limit, in a thread of its own: a name server or a proxy may hang too."""
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError

        where = f"tracker {tracker}"
        try:
            hook = self._hook(tracker)
            with limits.limited(DEADLINE_S):
                return limits.call_in_thread(lambda: question(hook))
        except TrackingError:
            raise
        except RetrainingError as error:
            raise TrackingError(error.where, error.found, error.expected, error.way_out) from None
        except (limits.OutOfTimeError, GoogleAPIError, GoogleAuthError) as error:
            known = explain(error)
            found, way_out = (known.found, known.way_out) if known else (f"{type(error).__name__}: {error}", LATER)
            raise TrackingError(where, found, "an answer", way_out) from None
        except (OSError, RuntimeError, TypeError, ValueError, LookupError) as error:  # MLflow's, or an answer of it
            shown = str(error) if isinstance(error, ConnectionError) else type(error).__name__
            raise TrackingError(where, shown, "an answer in time", LATER) from None

    def _hook(self, tracker: str) -> _Tracker:
        hooks: dict[str, Callable[[], _Tracker]] = {VERTEX: lambda: self._experiments, MLFLOW: lambda: self._mlflow}
        return hooks[tracker]()

    @cached_property
    def _experiments(self) -> Experiments:
        from retraining.hooks.experiments import Experiments

        return Experiments(self._session(), self._settings.tensorboard)

    @cached_property
    def _mlflow(self) -> Mlflow:
        from retraining.hooks.mlflow import Mlflow

        return Mlflow(self._settings.mlflow_connection, label_of(self._settings.environment))
