"""Reads a request to Cloud Storage, once, into one value.

In: a request by one of its addresses: the JSON API's, its uploads' (content alone, two parts, resumable), the XML
API's of an object. Out: a `Call`. What the local cloud does not offer is refused by name here, before anybody is
asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

from localcloud.fields import Fate
from localcloud.http.http1 import Request
from localcloud.storage.attributes import FIELDS, check_fields
from localcloud.storage.calls import Call, Document, Source
from localcloud.storage.hashes import declared_hashes
from localcloud.storage.multipart import RelatedBody
from localcloud.storage.names import check_bucket_name, check_object_name
from localcloud.storage.queries import Query, check_query, read_conditions, read_integer, read_listing, read_query
from localcloud.storage.refusals import RefusedError

FindUpload = Callable[[str], tuple[str, str]]
"""Gives bucket and object of a resumable upload under way; raises RefusedError."""
_UPLOADS = (["upload", "storage", "v1"], ["resumable", "upload", "storage", "v1"])
_APIS = (["storage", "v1"], ["download", "storage", "v1"], *_UPLOADS)
_BUCKET_VERBS = {"GET": "get", "HEAD": "get", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}
_COPIES = {"rewriteTo": "rewrite", "copyTo": "copy"}
_XML_ATTRIBUTES = {
    "cache-control": "cacheControl",
    "content-disposition": "contentDisposition",
    "content-encoding": "contentEncoding",
    "content-language": "contentLanguage",
    "x-goog-custom-time": "customTime",
    "x-goog-storage-class": "storageClass",
}
_XML_ANSWERS = {
    "response-content-disposition": "contentDisposition",
    "response-content-type": "contentType",
}
"""Parameters of the XML API that change what a reading answer says of its content."""
_SINGLE = ("x-goog-", "content-", "if-", "range", "x-upload-")
_XML_CONDITIONS = {"generation": "ifGenerationMatch", "metageneration": "ifMetagenerationMatch"}


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A request whose address is read."""

    request: Request
    verb: str
    parts: list[str]
    query: Query
    fields: Mapping[str, str]

    def call(self, method: str, **values: Any) -> Call:  # noqa: ANN401 - the fields of a Call
        """Make the call, with what every one has.

        Raises:
            RefusedError: A parameter is not one of the method's, or is refused.
        """
        check_query(self.query, method)
        common = {
            "conditions": read_conditions(self.query, self.fields),
            "generation": read_integer(self.query, "generation"),
        }
        return Call(method=method, host=self.request.host, verb=self.verb, fields=self.fields, **{**common, **values})


def is_xml(target: str) -> bool:
    """Whether an address is the XML API's, whose refusals are XML."""
    return _api(_raw_parts(target)) is None


async def read_call(request: Request, find_upload: FindUpload) -> Call:
    """Read a request.

    Raises:
        RefusedError: It is none, or none that the local cloud offers.
    """
    raw = _raw_parts(request.head.target)
    api = _api(raw)
    try:
        parts = [unquote(part, errors="strict") for part in (raw if api is None else raw[len(api) :])]
    except ValueError:
        raise RefusedError(400, "Invalid address: expected UTF-8 in percent-encoding.") from None
    fields: dict[str, str] = {}
    for name, value in request.head.fields:
        if name.lower() == "x-goog-hash" and "x-goog-hash" in fields:  # one for each checksum
            fields["x-goog-hash"] += f",{value}"
        elif fields.setdefault(name.lower(), value) != value and name.lower().startswith(_SINGLE):
            raise RefusedError(400, f"The field {name} is given twice, with two values. Expected one.")
    if any(name.startswith(("x-goog-encryption-", "x-goog-copy-source-encryption-")) for name in fields):
        raise RefusedError(501, "Customer-supplied encryption keys are not offered by the local cloud. Leave them out.")
    query = read_query(urlsplit(request.head.target).query) if api is not None else {}
    asked = _Asked(request=request, verb=request.method, parts=parts, query=query, fields=fields)
    if api is None:
        return _read_xml(asked)
    if api in _UPLOADS:
        return await _read_upload(asked, find_upload)
    if parts[:1] == ["b"]:
        return await _read_bucket(asked)
    if len(parts) == 3 and parts[0] == "projects" and parts[2] == "serviceAccount" and asked.verb == "GET":
        return asked.call("storage.projects.serviceAccount.get", project=parts[1])
    raise _unknown(asked)


async def read_json(request: Request) -> Document:
    """Read a body that is to be a JSON object, without a key twice; {} for none.

    Raises:
        RefusedError: It is anything else.
    """
    return parse_json(await request.read_body())


def parse_json(body: bytes) -> Document:
    """Read bytes that are to be a JSON object, without a key twice; {} for none.

    Raises:
        RefusedError: They are anything else.
    """

    def once(pairs: list[tuple[str, Any]]) -> Document:
        document = dict(pairs)
        if len(document) != len(pairs):
            raise RefusedError(400, "Parse Error: a key is given twice in a JSON object. Expected each once.")
        return document

    try:
        document = json.loads(body.strip() or b"{}", object_pairs_hook=once)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise RefusedError(400, "Parse Error: expected a JSON object.")
    return document


def _raw_parts(target: str) -> list[str]:
    return urlsplit(target).path.removeprefix("/").split("/")


def _api(raw: list[str]) -> list[str] | None:
    return next((api for api in _APIS if raw[: len(api)] == api), None)


async def _read_bucket(asked: _Asked) -> Call:
    parts, verb, project = asked.parts, asked.verb, asked.query.get("project", "")
    if parts[-1] == "" and len(parts) in (2, 3, 4):  # `/b/` and `/b/BUCKET/o/`, which some clients write
        parts = parts[:-1]
    if len(parts) == 1 and verb in ("GET", "POST"):
        resource = await read_json(asked.request) if verb == "POST" else {}
        name = check_bucket_name(str(resource.get("name"))) if verb == "POST" else ""
        method = "storage.buckets.insert" if verb == "POST" else "storage.buckets.list"
        return asked.call(method, bucket=name, project=project, resource=resource, listing=read_listing(asked.query))
    bucket = check_bucket_name(parts[1]) if len(parts) > 1 else ""
    if len(parts) == 2 and verb in _BUCKET_VERBS:
        resource = await read_json(asked.request) if verb in ("PATCH", "PUT") else {}
        return asked.call(f"storage.buckets.{_BUCKET_VERBS[verb]}", bucket=bucket, resource=resource)
    if len(parts) == 3 and parts[2] == "storageLayout" and verb == "GET":
        return asked.call("storage.buckets.getStorageLayout", bucket=bucket)
    if len(parts) == 3 and parts[2] == "o" and verb == "GET":
        return asked.call("storage.objects.list", bucket=bucket, listing=read_listing(asked.query))
    if len(parts) >= 4 and parts[2] == "o":
        return await _read_object(asked, bucket, check_object_name(parts[3]), parts[4:])
    raise _unknown(asked)


async def _read_object(asked: _Asked, bucket: str, name: str, rest: list[str]) -> Call:
    verb = asked.verb
    if not rest and verb in ("GET", "HEAD", "DELETE"):
        method = "storage.objects.delete" if verb == "DELETE" else "storage.objects.get"
        is_media = asked.query.get("alt") == "media" or asked.request.path.startswith("/download/")
        return asked.call(method, bucket=bucket, name=name, media=is_media)
    resource = await read_json(asked.request)
    if not rest and verb in ("PATCH", "PUT"):
        method = "storage.objects.patch" if verb == "PATCH" else "storage.objects.update"
        return asked.call(method, bucket=bucket, name=name, resource=resource)
    if rest == ["compose"] and verb == "POST":
        return _read_composition(asked, bucket, name, resource)
    source = Source(
        bucket=bucket,
        name=name,
        generation=read_integer(asked.query, "sourceGeneration"),
        conditions=read_conditions(asked.query, {}, of="Source"),
    )
    if len(rest) == 5 and rest[0] in _COPIES and (rest[1], rest[3]) == ("b", "o") and verb == "POST":
        where = {"bucket": check_bucket_name(rest[2]), "name": check_object_name(rest[4])}
        method = f"storage.objects.{_COPIES[rest[0]]}"
        return asked.call(method, **where, sources=(source,), resource=resource, generation=None)
    if len(rest) == 3 and rest[:2] == ["moveTo", "o"] and verb == "POST":
        where = {"bucket": bucket, "name": check_object_name(rest[2])}
        return asked.call("storage.objects.move", **where, sources=(source,), generation=None)
    raise _unknown(asked)


def _read_composition(asked: _Asked, bucket: str, name: str, resource: Document) -> Call:
    check_fields(resource, "ComposeRequest")
    listed = resource.get("sourceObjects")
    if not isinstance(listed, list) or not 1 <= len(listed) <= 32 or not all(isinstance(each, dict) for each in listed):
        raise RefusedError(400, "A composition needs sourceObjects: expected 1 to 32 objects with a name.")
    sources = []
    for each in listed:
        wanted = each.get("objectPreconditions") or {}
        query = {key: str(value) for key, value in wanted.items()} if isinstance(wanted, dict) else {}
        given = {} if each.get("generation") is None else {"generation": str(each["generation"])}
        sources.append(
            Source(
                bucket=bucket,
                name=check_object_name(str(each.get("name", ""))),
                generation=read_integer(given, "generation"),
                conditions=read_conditions(query, {}),
            )
        )
    destination = resource.get("destination") or {}
    if not isinstance(destination, dict):
        raise RefusedError(400, "A composition's destination is an object's metadata.")
    return asked.call("storage.objects.compose", bucket=bucket, name=name, sources=tuple(sources), resource=destination)


async def _read_upload(asked: _Asked, find_upload: FindUpload) -> Call:
    if asked.parts[:1] != ["b"] or asked.parts[2:] not in (["o"], ["o", ""]):
        raise _unknown(asked)
    bucket, method = check_bucket_name(asked.parts[1]), "storage.objects.insert"
    if "upload_id" in asked.query:
        return _read_piece(asked, bucket, find_upload)
    kind = asked.query.get("uploadType", asked.query.get("upload_protocol", ""))
    if asked.verb != "POST" or kind not in ("media", "multipart", "resumable"):
        raise _unknown(asked)
    resource: Document = {}
    content, content_type = asked.request.body, asked.fields.get("content-type", "")
    if kind == "multipart":
        body = RelatedBody(content_type, asked.request.body)
        resource = parse_json(await body.read_metadata())
        content, content_type = body.content(), body.content_type
    elif kind == "resumable":
        resource = await read_json(asked.request)
        content_type = asked.fields.get("x-upload-content-type", "")
    if "contentEncoding" in asked.query:
        resource = {"contentEncoding": asked.query["contentEncoding"], **resource}
    named = asked.query.get("name") or resource.get("name")
    if not isinstance(named, str):
        raise RefusedError(400, "Required: an upload needs the object's name, in the query or in its metadata.")
    return asked.call(
        method,
        bucket=bucket,
        name=check_object_name(named),
        resource=resource,
        content=None if kind == "resumable" else content,
        content_type=content_type,
        hashes=declared_hashes(asked.fields, resource),
        upload="start" if kind == "resumable" else "",
    )


def _read_piece(asked: _Asked, bucket: str, find_upload: FindUpload) -> Call:
    session = asked.query["upload_id"]
    if asked.verb not in ("PUT", "POST", "DELETE"):
        raise _unknown(asked)
    whose, name = find_upload(session)
    if whose != bucket:
        raise RefusedError(404, f"No upload {session[:100]} in {bucket}. Start the upload again.")
    return asked.call(
        "storage.objects.insert",
        bucket=bucket,
        name=name,
        upload=session,
        content=asked.request.body,
        hashes=declared_hashes(asked.fields),
    )


def _read_xml(asked: _Asked) -> Call:
    """Read the XML API's address of an object, `/bucket/name`."""
    bucket, name, verb = asked.parts[0], "/".join(asked.parts[1:]), asked.verb
    parameters = _xml_query(urlsplit(asked.request.head.target).query)
    if bucket and name and parameters.keys() & {"uploads", "uploadId"}:
        return _read_part_upload(asked, check_bucket_name(bucket), check_object_name(name), parameters)
    if not bucket or not name or verb not in ("GET", "HEAD", "PUT", "DELETE"):
        raise RefusedError(501, f"{verb} of this address of the XML API is not offered. Use the JSON API.")
    if unknown := parameters.keys() - {"generation", *(_XML_ANSWERS if verb in ("GET", "HEAD") else ())}:
        raise RefusedError(501, f"The parameter {min(unknown)[:100]!r} of the XML API is not offered.")
    answered = {attribute: parameters[name] for name, attribute in _XML_ANSWERS.items() if name in parameters}
    if not all(value.isascii() and value.isprintable() for value in answered.values()):
        raise RefusedError(400, "Invalid argument. A response-content parameter is no text that a header field can be.")
    conditions = {
        parameter: asked.fields[f"x-goog-if-{kind}-match"]
        for kind, parameter in _XML_CONDITIONS.items()
        if f"x-goog-if-{kind}-match" in asked.fields
    }
    _check_headers(asked.fields)
    methods = {"PUT": "storage.objects.insert", "DELETE": "storage.objects.delete"}
    return asked.call(
        methods.get(verb, "storage.objects.get"),
        bucket=check_bucket_name(bucket),
        name=check_object_name(name),
        conditions=read_conditions(conditions, asked.fields),
        generation=read_integer(parameters, "generation"),
        media=verb in ("GET", "HEAD"),
        resource=_xml_resource(asked.fields) if verb == "PUT" else {},
        content=asked.request.body if verb == "PUT" else None,
        content_type=asked.fields.get("content-type", ""),
        hashes=declared_hashes(asked.fields),
        answered=answered,
        xml=True,
    )


def _read_part_upload(asked: _Asked, bucket: str, name: str, parameters: Mapping[str, str]) -> Call:
    """Read a step of an upload in parts."""
    steps = {
        ("POST", ("uploads",)): "start",
        ("PUT", ("partNumber", "uploadId")): "take",
        ("POST", ("uploadId",)): "finish",
        ("DELETE", ("uploadId",)): "end",
        ("GET", ("uploadId",)): "list",
    }
    step = steps.get((asked.verb, tuple(sorted(parameters))))
    if step is None:
        names = ", ".join(sorted(parameters))[:100]
        raise RefusedError(501, f"{asked.verb} with the parameters {names} of the XML API is not offered.")
    if any(field.startswith(("if-", "x-goog-if-")) for field in asked.fields):
        raise RefusedError(501, "Preconditions of uploads in parts are not offered. Leave them out.")
    _check_headers(asked.fields)
    return asked.call(
        "storage.objects.insert",
        bucket=bucket,
        name=name,
        parts=step,
        part=read_integer(parameters, "partNumber"),
        upload=parameters.get("uploadId", ""),
        resource=_xml_resource(asked.fields) if step == "start" else {},
        content=asked.request.body if step in ("take", "finish") else None,
        content_type=asked.fields.get("content-type", ""),
        hashes=declared_hashes(asked.fields) if step == "take" else {},
        xml=True,
    )


def _xml_resource(fields: Mapping[str, str]) -> Document:
    """Return the attributes of an object that stand in header fields."""
    resource: Document = {name: fields[field] for field, name in _XML_ATTRIBUTES.items() if field in fields}
    mark = "x-goog-meta-"
    if own := {name[len(mark) :]: value for name, value in fields.items() if name.startswith(mark)}:
        resource["metadata"] = own
    return resource


def _check_headers(fields: Mapping[str, str]) -> None:
    """Let header fields pass that the XML API of the local cloud has."""
    for name in fields:
        rule = FIELDS.header(name)
        if rule is not None and rule.fate is Fate.REFUSED:
            raise RefusedError(501, f"The field {name[:100]} is not offered: {rule.reason}. Leave it out.")


def _xml_query(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split("&") if part]
    if len({name for name, _, _ in pairs}) != len(pairs):
        raise RefusedError(400, "A parameter is given twice. Expected each once.")
    return {unquote(name): unquote_plus(value) for name, _, value in pairs}


def _unknown(asked: _Asked) -> RefusedError:
    path = asked.request.path[:200]
    if asked.verb == "POST" and path.rpartition("/")[2] in ("restore", "bulkRestore"):  # 404 is: nothing was deleted
        return RefusedError(501, f"{asked.verb} {path} is not offered: what is deleted cannot be restored.")
    return RefusedError(404, f"{asked.verb} {path} is not a call that the local cloud's Cloud Storage offers.")
