"""Lines of running processes on their way to Cloud Logging, and into files.

Comes in: pipes. Goes out: one log entry per line, in batches.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

from localcloud.logs.lines import Message, read_line
from localcloud.logs.store import SEVERITIES, Entry, LogStore

LOGGER = logging.getLogger(__name__)
_FLUSH_S = 0.1
_MAX_LINE = 64 * 1024


class LogShipper:
    """Collects entries and writes them several times a second, off the readers' threads.

    Args:
        path: The SQLite file of Cloud Logging.
    """

    def __init__(self, path: Path) -> None:
        self._store = LogStore(path)
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._pending = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._ship_entries, name="log-shipper", daemon=True)
        self._thread.start()

    def add(self, entry: Entry) -> None:
        """Take an entry; it is in the store a moment later."""
        with self._lock:
            self._entries.append(entry)
        self._pending.set()

    def flush(self) -> None:
        """Write everything taken so far."""
        with self._writing:
            with self._lock:
                entries, self._entries = self._entries, []
            if entries:
                self._store.append(entries)

    def close(self) -> None:
        """Write the rest and end."""
        self._closed = True
        self._pending.set()
        self._thread.join()
        self.flush()

    def _ship_entries(self) -> None:
        while not self._closed:
            self._pending.wait()
            self._pending.clear()
            time.sleep(_FLUSH_S)  # let a batch gather
            try:
                self.flush()
            except Exception:  # a full disk must not end the thread: the next batch may pass
                LOGGER.exception("log entries are lost")


class ProcessLog:
    """The log of one job, or of one deployed model.

    Args:
        shipper: Where entries go.
        make_entry: Gives the entry of a message: task name, text or document, severity.
    """

    def __init__(self, shipper: LogShipper, make_entry: Callable[[str, Message, str], Entry]) -> None:
        self._shipper = shipper
        self._make_entry = make_entry

    def say(self, task_name: str, message: str, severity: str = "INFO") -> None:
        """Add an entry of the service itself."""
        self._add(task_name, message, severity)

    def follow(self, stream: IO[bytes], task_name: str, severity: str, copy_path: Path) -> threading.Thread:
        """Turn every line of a pipe into an entry (and a line of a file) until it ends; gives the thread that does.

        A line that is a JSON object with a `message` becomes a structured entry with a severity and a time of its own.
        """
        thread = threading.Thread(
            target=self._follow, args=(stream, task_name, severity, copy_path), name=f"log-{task_name}", daemon=True
        )
        thread.start()
        return thread

    def _follow(self, stream: IO[bytes], task_name: str, severity: str, copy_path: Path) -> None:
        with stream, copy_path.open("ab", buffering=0) as copy:
            while line := stream.readline(_MAX_LINE):
                copy.write(line if line.endswith(b"\n") else line + b"\n")
                text = line.decode(errors="replace").rstrip("\r\n")
                if text:
                    self._add(task_name, text, severity)

    def _add(self, task_name: str, text: str, severity: str) -> None:
        line = read_line(text)
        entry = self._make_entry(task_name, line.message, line.severity or severity)
        self._shipper.add(entry if line.timestamp_ns is None else replace(entry, timestamp_ns=line.timestamp_ns))


def job_log(shipper: LogShipper, project: str, job_id: str, trial_id: str | None = None) -> ProcessLog:
    """Return the log of a custom job, or of one trial of a tuning job, as Vertex AI writes it."""
    of_trial = {"ml.googleapis.com/trial_id": trial_id} if trial_id else {}

    def make(task_name: str, message: Message, severity: str) -> Entry:
        labels = {"ml.googleapis.com/job_id": job_id, "ml.googleapis.com/task_name": task_name, **of_trial}
        return Entry.of_job(
            project=project, job_id=job_id, task_name=task_name, message=message, severity=severity, labels=labels
        )

    return ProcessLog(shipper, make)


def prediction_log(
    shipper: LogShipper, project: str, region: str, endpoint_id: str, deployed_model_id: str
) -> ProcessLog:
    """Return the log of a deployed model's container, as Vertex AI writes it."""

    def make(task_name: str, message: Message, severity: str) -> Entry:
        return Entry(
            log_name=f"projects/{project}/logs/aiplatform.googleapis.com%2Fprediction_container",
            timestamp_ns=time.time_ns(),
            severity=SEVERITIES[severity],
            resource_type="aiplatform.googleapis.com/Endpoint",
            resource_labels={
                "endpoint_id": endpoint_id,
                "location": region,
                "resource_container": f"projects/{project}",
            },
            labels={"deployed_model_id": deployed_model_id, "task_name": task_name},
            text_payload=message if isinstance(message, str) else None,
            json_payload=None if isinstance(message, str) else message,
        )

    return ProcessLog(shipper, make)
