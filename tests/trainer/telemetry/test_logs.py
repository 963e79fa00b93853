"""The job's log: JSON with severity in a container, text for a person, and nothing left behind in the process."""

from __future__ import annotations

import datetime
import io
import json
import logging
import sys

import pytest

from trainer.telemetry.logs import log_to_streams

LOGGER = logging.getLogger("trainer.training.epochs")


def test_a_record_is_a_line_of_json_on_the_stream_of_its_severity(capsys) -> None:
    begun = datetime.datetime.now(datetime.UTC)
    with log_to_streams():
        LOGGER.debug("not logged")
        LOGGER.info("epoch %s", 1)
        LOGGER.warning('two\nlines "quoted"')
        try:
            raise ValueError("odd")
        except ValueError:
            LOGGER.exception("ValueError: odd")
    written = capsys.readouterr()
    (progress,), (warning, error) = (
        [json.loads(line) for line in text.splitlines()] for text in (written.out, written.err)
    )
    assert (progress["severity"], progress["message"]) == ("INFO", "epoch 1")
    assert (warning["severity"], warning["message"]) == ("WARNING", 'two\nlines "quoted"')
    assert error["severity"] == "ERROR"
    assert error["message"].startswith("ValueError: odd\nTraceback")
    assert begun <= datetime.datetime.fromisoformat(progress["time"]) <= datetime.datetime.now(datetime.UTC)


def test_a_terminal_gets_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with log_to_streams():
        LOGGER.error("DataError: gone")
    assert terminal.getvalue() == "DataError: gone\n"


def test_a_message_longer_than_an_entry_is_cut(capsys) -> None:
    with log_to_streams():
        LOGGER.info("%s", "ü" * 200_000)
    line = capsys.readouterr().out
    assert len(line) < 256_000
    assert json.loads(line)["message"].endswith("ü…")


def test_a_handler_at_the_root_does_not_write_it_again(capsys, caplog) -> None:
    """TensorFlow's libraries may have put one there; afterwards records go there as before."""
    with log_to_streams():
        LOGGER.error("once")
    assert caplog.records == []
    LOGGER.error("later")
    assert caplog.messages == ["later"]
    assert len(capsys.readouterr().err.splitlines()) == 1
