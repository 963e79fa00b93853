"""The command `quotas`: what runs in the region against its quota, and which jobs wait for room."""

from __future__ import annotations

import click

from retraining.commands.shell import Shell, print_answer
from retraining.core.catalog.hardware import load_hardware
from retraining.core.jobs.places import Places, running_jobs, used
from retraining.core.naming import storage, vertex
from retraining.core.report import terminal
from retraining.core.settings import include_path
from retraining.core.spec.quotas import FILE, load_quotas
from retraining.hooks.ports import CloudPort


def read_places(cloud: CloudPort) -> Places:
    """Return what is about to begin and what waits in the region."""
    uri = storage.places_uri(cloud.settings.bucket, cloud.settings.region)
    data = cloud.artifacts.read_object(uri)
    return Places.parse(data, uri, cloud.clock.now()) if data else Places(entries={})


@click.command("quotas")
@click.pass_obj
def show_quotas(shell: Shell) -> None:
    """Show what this environment's jobs use of the region's quota, and who waits.

    The limits are those of include/quotas.yaml; without the file what is used is shown all the same.
    """
    cloud = shell.connect()
    region, now = cloud.settings.region, cloud.clock.now()
    places = read_places(cloud)
    running = running_jobs(cloud.jobs.find_active(vertex.OWNER_LABEL), load_hardware(include_path()))
    quotas = load_quotas(shell.find_include())
    limits = quotas.limits(region) if quotas else {}
    taken, ran = used(places, running, now), used(Places(entries={}), running, now)
    rows: list[tuple[str, ...]] = [(region, "runs", "about to begin", "quota")]
    for name in dict.fromkeys((*limits, *taken)):
        begins = taken.get(name, 0) - ran.get(name, 0)
        rows.append((name, str(ran.get(name, 0)), str(begins), str(limits.get(name, "-"))))
    lines = list(terminal.table(rows)) if len(rows) > 1 else [f"no job runs in {region}, and {FILE} limits none there"]
    waiting = [("waits", "task", "cause", "priority", "since (UTC)", "needs")]
    for _, entry in places.waiting(now):
        wish = entry.wish
        needs = ", ".join(f"{amount} {name}" for name, amount in wish.needs.items() if name in limits)
        since = f"{entry.since:%Y-%m-%d %H:%M}"
        waiting.append((wish.model, wish.task, wish.cause, str(wish.priority), since, needs))
    if places.closed_until and now < places.closed_until:
        uri = storage.places_uri(cloud.settings.bucket, region)
        lines += ["", f"{uri} cannot be read: no job begins before {places.closed_until:%H:%M} UTC"]
    print_answer([*lines, "", *(terminal.table(waiting) if len(waiting) > 1 else ["no job waits for room"])])
