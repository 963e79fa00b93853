"""What is paid for when a worker dies, an answer is lost or a look fails: our operators beside Google's own.

All at the local cloud, through Google's clients, a process for each try and each wake. `make test-faults` prints the
table of docs/reliability.md.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.local_cloud import AddFault
from tests.support.scenes.struck_worker import DONE, PROCESSES, WAITS, Strike, Wish

if TYPE_CHECKING:
    from tests.support.scenes.paid_once import Contender

ENDS_WITHIN_S = 900
TRIES = 4
UPLOAD_S = 8
"""For which an upload is under way; at Google it is minutes."""
STRIKES = (
    Strike("killed before the create", "create"),
    Strike("killed after it", "create", after=True),
    Strike("the create is done, and answered with 503", "create", after=True, killed=False),
    Strike("killed while it waits", "look"),
    Strike("one 503 while it waits", "look", killed=False),
    Strike("killed when it has seen the end", "done"),
)
TAKEN_FOR_DEAD = "another worker goes on with it, the first one lives"


@pytest.fixture(scope="module")
def contenders(local_cloud: Any) -> dict[str, tuple[Contender, ...]]:
    """Ours and Google's, and processes that know the local cloud and have imported them."""
    del local_cloud
    custom_job = pytest.importorskip("airflow.providers.google.cloud.operators.vertex_ai.custom_job")
    if not hasattr(custom_job, "CreateCustomJobOperator"):
        pytest.skip("Google's provider of the oldest Airflow has no operator of custom jobs")
    from tests.support.scenes.paid_once import GOOGLES, OURS

    PROCESSES.set_forkserver_preload(["tests.support.scenes.paid_once", "tests.support.scenes.struck_worker"])
    return {"ours": OURS, "google's": GOOGLES}


def go_on(wish: Wish, first_try: int = 1) -> str:
    """Let Airflow start process after process, until the task has ended; gives how."""
    number, until = first_try, time.monotonic() + ENDS_WITHIN_S
    while number <= TRIES:
        assert time.monotonic() < until, f"no end: {wish.folder}/log.txt"
        of_triggerer = wish.is_deferred()
        code = wish.run(number)
        if code == DONE:
            return "success"
        if code == WAITS or of_triggerer:
            time.sleep(1)
        else:
            number += 1
    return "failed"


def make_wish(contender: Contender, folder: Path, strike: Strike | None) -> Wish:
    """A wish that nobody has had."""
    name = f"paid_{uuid.uuid4().hex[:12]}"
    (folder / name).mkdir()
    return Wish(make=contender.make, name=name, creates=contender.creates, folder=folder / name, strike=strike)


def struck(contender: Contender, folder: Path, strike: Strike) -> tuple[str, int]:
    """How the task ends and how often it was paid for, where something happens to it once."""
    wish = make_wish(contender, folder, strike)
    end = go_on(wish)
    assert (wish.folder / "struck").exists(), f"nothing happened: {wish.folder}/log.txt"
    return end, contender.count(wish.name)


def taken_for_dead(contender: Contender, folder: Path) -> tuple[str, int]:
    """The same where a second worker begins with the next try while the first one is at work."""
    wish = make_wish(contender, folder, None)
    first, until = wish.start(1, wish.folder / "first"), time.monotonic() + ENDS_WITHIN_S
    while not contender.count(wish.name):
        assert time.monotonic() < until
        time.sleep(0.2)
    end = go_on(wish, 2)
    first.join()
    return end, contender.count(wish.name)


def cell(found: tuple[str, int]) -> str:
    """For the table."""
    return f"{found[1]}" if found[0] == "success" else f"{found[1]}, failed"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_ours_is_paid_once_whatever_happens(
    contenders: dict[str, tuple[Contender, ...]],
    tmp_path: Path,
    add_fault: AddFault,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Prints how often each was paid for."""
    everybody = (*contenders["ours"], *contenders["google's"])
    add_fault("ModelService.UploadModel/operation", "delay", count=0, seconds=UPLOAD_S)
    happenings: dict[str, Callable[[Contender], tuple[str, int]]] = {
        **{strike.name: lambda each, strike=strike: struck(each, tmp_path, strike) for strike in STRIKES},
        TAKEN_FOR_DEAD: lambda each: taken_for_dead(each, tmp_path),
    }
    with ThreadPoolExecutor(max_workers=8) as threads:
        played = {(what, each): threads.submit(play, each) for what, play in happenings.items() for each in everybody}
        found = {key: future.result() for key, future in played.items()}
    with capsys.disabled():
        print(f"\n| {'operator'} | {' | '.join(happenings)} |\n|---|{'---|' * len(happenings)}")
        for each in everybody:
            print(f"| {each.title} | {' | '.join(cell(found[what, each]) for what in happenings)} |")
    assert {
        key[1].title: key[0] for key, value in found.items() if key[1] in contenders["ours"] and value != ("success", 1)
    } == {}
