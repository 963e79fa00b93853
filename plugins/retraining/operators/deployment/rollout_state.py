"""How far the change of a champion has come: one object per model, changed by compare and set; and traffic set by it.

Whatever dies, the next poke, the run's teardown or the daily cleaning reads here which way to go: on, or back. Two that
are at work at once agree by it too: who did not win a change steps back.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from retraining.core.documents import Rollout
from retraining.core.errors import ConflictError
from retraining.core.naming import storage
from retraining.hooks.endpoints import Endpoint
from retraining.hooks.ports import CloudPort

LOGGER = logging.getLogger(__name__)
TRAFFIC_TRIES = 3


class OvertakenError(ConflictError):
    """Somebody else changed the rollout meanwhile; the next poke reads what it is now."""


class RolloutState:
    """The rollout of one model.

    Args:
        cloud: The hooks.
        model: Whose.
    """

    def __init__(self, cloud: CloudPort, model: str) -> None:
        self.model = model
        self._artifacts = cloud.artifacts
        self._clock = cloud.clock
        self._uri = storage.rollout_uri(cloud.settings.bucket, model)
        self.generation = 0
        self._writer = uuid.uuid4().hex
        self.found: Rollout | None = None

    @property
    def uri(self) -> str:
        """Return where it is stored."""
        return self._uri

    def moment(self) -> datetime:
        """Return the whole second by which claims and signs of life are written; no decision rests on it."""
        return self._clock.now().replace(microsecond=0)

    def read_rollout(self) -> Rollout | None:
        """Read what is stored now; changes are made to this."""
        data, self.generation = self._artifacts.read_generation(self._uri)
        self.found = Rollout.parse(data, self._uri) if self.generation else None
        return self.found

    @property
    def current(self) -> Rollout:
        """Return what was read or written last."""
        if self.found is None:
            raise OvertakenError(self._uri, "no rollout", "one that is under way", "The next poke begins it")
        return self.found

    def begin_rollout(self, rollout: Rollout) -> Rollout:
        """Write a new one in the place of what was read."""
        return self._write_rollout(rollout)

    def change_rollout(self, **values: Any) -> Rollout:
        """Write some values anew.

        Raises:
            OvertakenError: Somebody else wrote since it was read.
        """
        return self._write_rollout(self.current.model_copy(update=values))

    def fence_off(self) -> None:
        """Write it as it is: whoever read it before this may change nothing any more, here or in the cloud.

        Where somebody else is faster, that one's change does it.
        """
        fenced = self.current.model_copy(update={"writer": self._writer})
        self._artifacts.write_if(self._uri, fenced.to_bytes(), self.generation)

    def require_unchanged(self) -> None:
        """Look whether it is still what was read or written last: right before each change of the cloud.

        Raises:
            OvertakenError: Somebody else wrote since.
        """
        _, generation = self._artifacts.read_generation(self._uri)
        if generation != self.generation:
            raise self._overtaken()

    def _write_rollout(self, rollout: Rollout) -> Rollout:
        stamped = rollout.model_copy(update={"writer": self._writer, "changed": self.moment()})
        written = self._artifacts.write_if(self._uri, stamped.to_bytes(), self.generation)
        if written is None:
            raise self._overtaken()
        if self.found is None or stamped.state != self.found.state:
            LOGGER.info(
                "rollout of version %s: %s%s",
                stamped.version_id,
                stamped.state,
                f" ({stamped.reason})" if stamped.reason else "",
            )
        self.generation, self.found = written, stamped
        return stamped

    def _overtaken(self) -> OvertakenError:
        return OvertakenError(self._uri, "another worker's change", "none since it was read", "The next poke goes on")


def move_traffic(
    cloud: CloudPort, state: RolloutState, endpoint: Endpoint, choose: Callable[[Endpoint], Mapping[str, int]]
) -> Endpoint:
    """Set the traffic while the rollout is still what this worker knows; the endpoint may change for other reasons.

    The endpoint gets the rollout's generation among its labels, so that no change counts any more that rests on what
    was read before, even where the shares stay as they are.

    Args:
        cloud: The hooks.
        state: By which it goes.
        endpoint: Whose traffic.
        choose: Gives the shares by what the endpoint is now; it may refuse.

    Raises:
        OvertakenError: Somebody else is at work on the rollout.
        ConflictError: The endpoint changed each time.
    """
    for tries in range(TRAFFIC_TRIES, 0, -1):
        # The etag first: whoever overtakes this worker after the look has then changed it.
        seen = cloud.endpoints.read_endpoint(endpoint.name)
        state.require_unchanged()
        traffic = choose(seen)
        try:
            return cloud.endpoints.set_traffic(seen, traffic, state.generation)
        except ConflictError:
            if tries == 1:
                raise
    raise AssertionError("unreachable: the last try returns or raises")
