"""A JSON object that is stored without a contract of its own, read as strictly as the documents.

Comes in: bytes and their address. Goes out: the object, or an error with that address and the way out.
"""

from __future__ import annotations

from retraining.core.documents.json_text import read_json
from retraining.core.errors import ContractError
from retraining.core.untyped import JsonObject

LOOK = "Look who wrote it, delete it, and clear the task that should have written it"


def read_object(data: bytes | str, where: str, way_out: str = LOOK) -> JsonObject:
    """Return a stored JSON object.

    Args:
        data: Its bytes.
        where: Its address.
        way_out: What a person does where it is none.

    Raises:
        ContractError: It is none.
    """
    try:
        value = read_json(data)
    except ValueError as error:
        raise ContractError(where, f"no JSON ({error})", "a JSON object", way_out) from error
    if not isinstance(value, dict):
        raise ContractError(where, f"a JSON {type(value).__name__}", "a JSON object", way_out)
    return value
