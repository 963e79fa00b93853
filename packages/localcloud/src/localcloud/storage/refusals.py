"""How Cloud Storage says no: one exception, in the JSON API's form or the XML API's.

In: status, message, reason. Out: an exception that the service turns into an answer.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from localcloud.errors import CallError
from localcloud.http.http1 import Response

# status -> google.rpc.Code, the JSON API's reason, the XML API's code
_WORDS = {
    304: ("OK", "notModified", "NotModified"),
    400: ("INVALID_ARGUMENT", "invalid", "InvalidArgument"),
    401: ("UNAUTHENTICATED", "authError", "AuthenticationRequired"),
    403: ("PERMISSION_DENIED", "forbidden", "AccessDenied"),
    404: ("NOT_FOUND", "notFound", "NoSuchKey"),
    405: ("UNIMPLEMENTED", "methodNotAllowed", "MethodNotAllowed"),
    409: ("ALREADY_EXISTS", "conflict", "BucketAlreadyOwnedByYou"),
    412: ("FAILED_PRECONDITION", "conditionNotMet", "PreconditionFailed"),
    416: ("OUT_OF_RANGE", "requestedRangeNotSatisfiable", "InvalidRange"),
    501: ("UNIMPLEMENTED", "notImplemented", "NotImplemented"),
}


class RefusedError(CallError):
    """A call is not answered with what it asked for."""

    def __init__(self, status: int, message: str, *, xml_code: str = "", fields: dict[str, str] | None = None) -> None:
        super().__init__(message, _WORDS[status][0])
        self.status = status
        self._xml_code = xml_code
        self._fields = fields or {}

    def respond(self, *, xml: bool = False) -> Response:
        """Return the answer, in the form of the API that was asked."""
        grpc_status, reason, xml_code = _WORDS[self.status]
        if self.status == 304:
            return Response(status=304)
        if xml:
            text = f"<Code>{self._xml_code or xml_code}</Code><Message>{escape(self.message)}</Message>"
            document = f"<?xml version='1.0' encoding='UTF-8'?><Error>{text}</Error>"
            kind = "application/xml; charset=UTF-8"
            return Response(status=self.status, body=document.encode(), content_type=kind, fields=self._fields)
        detail = {"message": self.message, "domain": "global", "reason": reason}
        error = {"code": self.status, "message": self.message, "status": grpc_status, "errors": [detail]}
        response = Response.of_json({"error": error}, self.status)
        response.fields.update(self._fields)
        return response


def nobody(way_out: str, *, xml: bool, is_missing: bool) -> Response:
    """Return the refusal of a request that does not say who sends it, or not so that one could believe it.

    https://cloud.google.com/storage/docs/json_api/v1/status-codes: `Login Required`, `Invalid Credentials`.

    Args:
        way_out: A sentence for the reader.
        is_missing: Whether it says nothing of it.
    """
    error = RefusedError(401, f"{'Login Required' if is_missing else 'Invalid Credentials'}. {way_out}")
    return error.respond(xml=xml)


def no_such_bucket() -> RefusedError:
    """Return the refusal of a call to a bucket that does not exist."""
    return RefusedError(404, "The specified bucket does not exist.", xml_code="NoSuchBucket")


def no_such_object(bucket: str, name: str) -> RefusedError:
    """Return the refusal of a call to an object that does not exist."""
    return RefusedError(404, f"No such object: {bucket}/{name}")
