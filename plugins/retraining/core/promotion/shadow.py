"""Shadow traffic: requests of the last day are sent once more, to a version that no customer asks yet.

In: rows of the request log, and how far an earlier poke came. Out: which requests are sent when, and what their answers
say: the gates of the ramp, by the same tests. No user meets these answers, and no value of a request leaves this module
but to the endpoint: what is written down are counts, shares and names of inputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from retraining.core.documents import RampGate, RampStep, ShadowTraffic, Signature, SmokeRequest
from retraining.core.documents.json_text import read_json
from retraining.core.promotion import ramp_gates
from retraining.core.promotion.latencies import Measured
from retraining.core.spec.deployment import Canary, Shadow
from retraining.core.untyped import JsonObject, Row

CHUNK = timedelta(seconds=40)
"""So long a poke sends, at the recorded pace; then the task gives its worker slot back for a while."""

LONGEST_CHUNK = timedelta(seconds=80)
"""A poke stops here also where answers take longer than the pace allows."""

CHUNK_REQUESTS = 400
"""In one poke, at most."""

LONGEST = 4
"""All pokes together take as many times `max_minutes`, at most: between two of them nothing is sent."""

MOST_ANSWERS = 20_000
"""That are held against others; of further ones only errors and times are judged."""

LOGGED = "in the hours of the log"

NOBODY_SERVES = "no version served before this one, so nobody's requests could be sent"


@dataclass(frozen=True, kw_only=True)
class LoggedRequest:
    """A request of the log: when it came, its instances, and what the version before answered."""

    at: datetime
    instances: tuple[JsonObject, ...]
    answers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Log:
    """What can be sent again, oldest first.

    Attributes:
        requests: That can be.
        unread: How many have other inputs than the version takes: a feature went or came, and a person accepted that.
        inputs: The version's inputs that one of those lacks, or has as another type.
        missing: Why there is no log; empty: there is one.
    """

    requests: tuple[LoggedRequest, ...] = ()
    unread: int = 0
    inputs: tuple[str, ...] = ()
    missing: str = ""


def read_log(rows: Iterable[Row], smoke_requests: Sequence[SmokeRequest], signature: Signature | None) -> Log:
    """Return the requests that can be sent again.

    Left out are smoke tests, requests with an instance that is no JSON object, and those that the version before did
    not answer: what it refused says nothing about another.

    Args:
        rows: Of `render_shadow_sql`.
        smoke_requests: What deployments asked.
        signature: Of a version that takes just these inputs; None: it takes what it likes.
    """
    found = [request for row in rows if (request := _read_request(row, smoke_requests))]
    fits = {id(request): _misfits(request, signature) for request in found}
    able = [request for request in found if fits[id(request)] is None]
    misfits = [names for names in fits.values() if names is not None]
    return Log(
        requests=tuple(sorted(able, key=lambda request: (request.at, _text(request)))),
        unread=len(misfits),
        inputs=tuple(sorted({name for names in misfits for name in names})),
    )


def begun(shadow: Shadow, done: ShadowTraffic, log: Log) -> ShadowTraffic:
    """Return the replay as it is written down before anything is sent.

    Args:
        shadow: Of the spec.
        done: With the time up to which the log was read.
        log: What it has.
    """
    requests = log.requests
    lasted = requests[-1].at - requests[0].at if requests else timedelta()
    values = {
        "requests": len(requests),
        "values": len({_text(request) for request in requests}),
        "unread": log.unread,
        "inputs": log.inputs,
        "missing": log.missing,
        "pace": max(1.0, lasted / timedelta(minutes=shadow.max_minutes)),
    }
    return done.model_copy(update=values)


def is_over(shadow: Shadow, done: ShadowTraffic, now: datetime) -> bool:
    """Return whether nothing more is sent: all was, or it took too long."""
    return done.sent >= (done.requests or 0) or now >= done.until + LONGEST * timedelta(minutes=shadow.max_minutes)


def next_chunk(done: ShadowTraffic, requests: Sequence[LoggedRequest]) -> list[tuple[timedelta, LoggedRequest]]:
    """Return what this poke sends, and how long after its beginning: at the recorded gaps, or the closer ones."""
    rest = requests[done.sent : done.sent + CHUNK_REQUESTS]
    due = [((request.at - rest[0].at) / done.pace, request) for request in rest]
    return [(after, request) for after, request in due if after <= CHUNK]


def judge_shadow(canary: Canary, done: ShadowTraffic) -> tuple[RampGate, ...]:
    """Return the gates of a replay; what cannot be judged says why, and stops nothing."""
    if done.values < 2:
        return (RampGate(name="requests", passed=None, message=f"not judged: {_reason_unasked(done)}"),)
    known = done.answered + done.errors
    sent = _describe_sent(done)
    requests = RampGate(
        name="requests", passed=True if known else None, message=sent if known else f"not judged: {sent}"
    )
    if done.look is None:
        return (requests,)
    alone = canary.model_copy(update={"percent": (1, 100)})
    step = RampStep(percent=1, start=done.until, looks=(done.look,), answers=done.answers_shift)
    gates = (ramp_gates.errors_gate(alone, (step,), LOGGED), ramp_gates.latency_gate(alone, (step,), LOGGED))
    return (requests, *gates, ramp_gates.answers_gate(alone, step, "answers"))


def judged(done: ShadowTraffic, gates: tuple[RampGate, ...]) -> ShadowTraffic:
    """Return a replay at its end: with its gates, and without the single answers, of which the shift is enough."""
    return done.model_copy(update={"gates": gates, "answers": ()})


def refusal(gates: Sequence[RampGate]) -> str:
    """Return in words why a version goes back before any customer asked it; empty: nothing speaks against it."""
    failed = "; ".join(f"{gate.name}: {gate.message}" for gate in gates if gate.passed is False)
    return f"Nothing deployed: requests of the last day, sent to it without a user, {failed}." if failed else ""


def looked_at(canary: Canary, done: ShadowTraffic, end: datetime, new: Measured, old: Measured) -> ShadowTraffic:
    """Return a replay with the counts that its gates follow from.

    Args:
        canary: With the margins.
        done: All is sent.
        end: From which on nothing of it is measured.
        new: What the version's times were on the endpoint for tries.
        old: What the version before answered in the logged time, as measured. At least what was sent again: it stands
            in the log with an answer.
    """
    slow_ms = old.latencies.slow_ms(canary.max_latency_ratio) if old.latencies.total >= canary.min_requests else None
    counted = Measured(requests=done.answered + done.errors, errors=done.errors, latencies=new.latencies)
    old = replace(old, requests=max(old.requests, done.sent))
    look = ramp_gates.look(canary, (done.until, max(end, done.until + timedelta(seconds=1))), counted, old, slow_ms)
    return done.model_copy(update={"look": look})


def logged_answers(requests: Sequence[LoggedRequest]) -> Iterator[str]:
    """Yield what the version before answered, as the log has it."""
    for request in requests:
        yield from request.answers


def _reason_unasked(done: ShadowTraffic) -> str:
    if done.missing:
        return done.missing
    if not done.requests:
        none = "the request log has no answered request of the version before in these hours"
        return f"{none} that this version could read ({_describe_unread(done)})" if done.unread else none
    return f"the request log has one request alone, {done.requests} times"


def _describe_sent(done: ShadowTraffic) -> str:
    lost = done.sent - done.answered - done.errors
    parts = [f"{done.sent} of {done.requests} logged requests sent again, {done.answered} answered"]
    parts[0] += f" ({done.pace:.3g} times as quick as they came)" if done.pace > 1 else ""
    if done.sent < (done.requests or 0):
        parts.append("for the rest there was no time")
    if lost:
        parts.append(f"{lost} were lost with the process that sent them")
    if done.unread:
        parts.append(_describe_unread(done))
    return "; ".join(parts)


def _describe_unread(done: ShadowTraffic) -> str:
    others = f"{done.unread} logged requests have other inputs than this version takes"
    return others + (f": {', '.join(done.inputs)} missing or of another type" if done.inputs else "")


def _read_request(row: Row, smoke_requests: Sequence[SmokeRequest]) -> LoggedRequest | None:
    try:
        asked, answered = ([read_json(str(text), finite=False) for text in row[key]] for key in _PAYLOADS)
    except ValueError:
        return None
    instances: list[JsonObject] = [dict(one) for one in asked if isinstance(one, Mapping)]
    if not instances or not len(instances) == len(asked) == len(answered) or any(map(_is_error, answered)):
        return None
    at = row["logging_time"]
    asked_by, number = str(row["deployed_model_id"]), len(instances)
    if any(
        (test.deployed_model_id, test.instances) == (asked_by, number) and test.start <= at <= test.end
        for test in smoke_requests
    ):
        return None
    return LoggedRequest(at=at, instances=tuple(instances), answers=tuple(map(str, row["response_payload"])))


_PAYLOADS = ("request_payload", "response_payload")


def _is_error(answer: object) -> bool:
    return isinstance(answer, Mapping) and "error" in answer


def _misfits(request: LoggedRequest, signature: Signature | None) -> set[str] | None:
    """Return the inputs that an instance lacks, or has as another type; None: the version takes the request.

    TensorFlow Serving refuses a request that lacks an input, or has one more.
    """
    if signature is None:
        return None
    inputs, found, fits = signature.inputs, set[str](), True
    for instance in request.instances:
        found |= {name for name, kind in inputs.items() if name not in instance or not _is_of(instance[name], kind)}
        fits = fits and instance.keys() == inputs.keys()
    return None if fits and not found else found


def _is_of(value: object, kind: str) -> bool:
    """Return whether a value is what a TensorFlow type takes in a request; a list by all that is in it."""
    if isinstance(value, list | tuple):
        return all(_is_of(item, kind) for item in value)
    if kind.lower() == "string":
        return isinstance(value, str) or (isinstance(value, Mapping) and set(value) == {"b64"})
    if kind.lower().startswith(("int", "uint")):
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if kind.lower().startswith(("float", "double", "half", "bfloat")):
        return not isinstance(value, bool) and (isinstance(value, int | float) or value in _NOT_FINITE)
    return True


_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def _text(request: LoggedRequest) -> str:
    return json.dumps(request.instances, sort_keys=True)
