"""What a process says of its use."""

from __future__ import annotations

import time

import pytest
import tensorflow as tf

from trainer.telemetry import usage


def test_a_busy_process_uses_its_share(monkeypatch) -> None:
    """Two cores for ten seconds, of which this process's CPU time is a part."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1})
    monkeypatch.setattr(usage, "process_age_s", lambda: 10.0)
    found = usage.measure_usage()
    assert found["cores"] == 2
    assert found["cpu_seconds"] > 0
    assert found["cpu_share"] == pytest.approx(found["cpu_seconds"] / 20, abs=0.001)
    assert 50 < found["memory_mb"] < 100_000
    assert "accelerator_memory_mb" not in found


def test_accelerators_are_counted_together(monkeypatch) -> None:
    devices = [tf.config.LogicalDevice(f"/device:GPU:{index}", "GPU") for index in range(2)]
    peaks = {"GPU:0": 3 << 20, "GPU:1": 4 << 20}
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices if kind == "GPU" else [])
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", lambda device: {"peak": peaks[device]})
    assert usage.measure_usage()["accelerator_memory_mb"] == 7
    assert usage.describe_usage("train").endswith("and 7 MB of accelerators")


def test_a_process_is_as_old_as_its_clock_says() -> None:
    """It was started before this test, and less than a day ago."""
    first = usage.process_age_s()
    assert 0.5 < first < 86_400
    now, later = time.monotonic(), usage.process_age_s()
    assert later - first < 5 + time.monotonic() - now
    assert later >= first


def test_the_line_is_short() -> None:
    line = usage.describe_usage("train")
    assert line.startswith("train: used ")
    assert "MB" in line
    assert len(line) < 100
