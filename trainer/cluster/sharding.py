"""Who reads what where several processes train in lockstep. No TensorFlow: files are fetched before it is there.

By `examples`, each process reads the whole split and takes its rows of every batch: the batches are those of one
machine. By `files`, each reads its share of the files only: less to read and to keep, other batches of the same size.
"""

from __future__ import annotations

from trainer.cluster.replica import Replica
from trainer.contract.documents import ManifestSplit, Training
from trainer.input.source import Share

_MOST_ROWS = 20_000_000  # above that, `auto` is by files


def training_share(training: Training, rows: int, replica: Replica) -> Share:
    """Give the part of each split that this process reads."""
    alone = replica.count == 1 or replica.is_evaluator or replica.servers or training.strategy == "parameter_server"
    by_files = training.sharding == "files" or (training.sharding == "auto" and rows > _MOST_ROWS)
    return Share(index=replica.index, count=replica.count) if by_files and not alone else Share()


def most_rows(split: ManifestSplit, share: Share) -> int:
    """Give the most examples that any of the processes reads, as `input.files` hands files out."""
    rows = [file.rows for file in split.files if file.rows]
    if not rows or share.count == 1:
        return -(-split.rows // share.count)
    if len(rows) >= share.count:
        return max(sum(rows[index :: share.count]) for index in range(share.count))
    return sum(-(-number // share.count) for number in rows)
