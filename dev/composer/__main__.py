"""`python -m composer`, or `make deploy ENV=… BUCKET=…`: bring the bundle to the bucket of a Composer environment.

Comes in: `build/bundle`, which `make bundle` builds. Goes out: every change as a line, and then the files: plugins
before DAGs, what is gone at the end. Ends with 0 when the bucket has the bundle, 1 when a person must decide. It may be
killed at any line and run again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from composer.bucket import DeployError, EnvironmentBucket, Listing, digests_of
from composer.changes import Change, Digests, differences, keep_both, plan_changes

_BUNDLE_PATH = Path("build/bundle")


def deploy(bucket: EnvironmentBucket, folder: Path, commit: str, *, dry: bool, force: bool) -> None:
    """Say what changes, and change it unless `dry`.

    Raises:
        DeployError: A file of somebody else's is in the way and `force` is not set, or somebody writes meanwhile.
    """
    bundle = digests_of(folder)
    listing = bucket.list(bundle)
    changes = plan_changes(bundle, listing.found, listing.left)
    for change in changes:
        print(change)
    print(f"{_counted(changes)}; {listing.commit or 'nothing'} is there, {commit} goes there")
    foreign = [change.name for change in changes if change.foreign]
    if foreign and not force:
        raise DeployError(
            f"{len(foreign)} files are not as an upload from here left them, such as {foreign[0]}: look at them, and "
            "set FORCE=1 to replace and remove them all the same"
        )
    if not dry:
        _apply(bucket, changes, bundle, listing, folder, commit)
        print("done: the environment's machines have it in some minutes")


def _apply(
    bucket: EnvironmentBucket,
    changes: Sequence[Change],
    bundle: Digests,
    listing: Listing,
    folder: Path,
    commit: str,
) -> None:
    both = keep_both(bundle, listing.left, listing.found)
    generation = bucket.write_record(both, f"half of {commit}", listing.record_generation)
    for change in changes:
        bucket.apply(change, listing, folder)
    if other := list(differences(bundle, bucket.list(bundle).found, listing.left)):
        raise DeployError(f"{other[0]} was changed by somebody while this upload ran: run it again")
    bucket.write_record({name: frozenset({digest}) for name, digest in bundle.items()}, commit, generation)


def _counted(changes: Sequence[Change]) -> str:
    kinds = [change.kind for change in changes]
    return ", ".join(f"{kinds.count(kind)} to {kind}" for kind in dict.fromkeys(kinds)) or "no change"


def _commit() -> str:
    """Return the checkout's commit, and whether files differ from it."""
    done = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True)
    return done.stdout.strip() or "an unknown commit"


def main(arguments: Sequence[str] | None = None) -> int:
    """Deploy; return the exit code."""
    parser = argparse.ArgumentParser(prog="composer", description=__doc__)
    parser.add_argument("--environment", required=True, help="name of the Composer environment")
    parser.add_argument("--bucket", required=True, help="its bucket, without gs://")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    parser.add_argument("--force", action="store_true", help="replace and remove what somebody else changed")
    options = parser.parse_args(arguments)
    try:
        bucket = EnvironmentBucket(options.bucket.removeprefix("gs://").rstrip("/"))
        print(bucket.require_environment(options.environment))
        deploy(bucket, _BUNDLE_PATH, _commit(), dry=options.dry_run, force=options.force)
    except DeployError as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
