"""From complete spans to the run's manifest: which file belongs to which split."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.contract.documents import (
    ExportRequest,
    FilePart,
    Manifest,
    ManifestFile,
    ManifestSpan,
    ManifestSplit,
    Span,
    SpanFile,
    SpanWork,
)
from trainer.export.work import FROZEN_SET, Work
from trainer.storage import join_uri


def build_manifest(
    request: ExportRequest,
    works: Sequence[Work],
    spans: Sequence[Span],
    seconds: float,
    request_digest: str | None = None,
) -> Manifest:
    """Sort the spans' files into splits.

    All parts of a span from `test_start` on are test, the frozen set is golden, any other part is itself. A span that
    is not exported counts with its rows and without files.

    Args:
        spans: What each of them holds, in the same order.
        seconds: How long it took.
        request_digest: SHA-256 of the request's bytes.
    """
    names = ("train", "validation", "test", *([FROZEN_SET] if request.golden else []))
    files: dict[str, list[ManifestFile]] = {name: [] for name in names}
    for work, span in zip(works, spans, strict=True):
        for file in span.files:
            files[_split_of(request, work.span, file.part)].append(_manifest_file(work, file))
    new = [span for work, span in zip(works, spans, strict=True) if work.action == "export"]
    used = [span for span in request.spans if span.span not in request.quarantined]
    return Manifest(
        model=request.model,
        run_key=request.run_key,
        request_digest=request_digest,
        schema_hash=request.schema_hash,
        compression=request.compression,
        columns=request.columns,
        table=request.table,
        format=request.format,
        layout=request.layout,
        images=request.images,
        quarantined=request.quarantined,
        splits={name: ManifestSplit(rows=_rows(request, used, name), files=tuple(files[name])) for name in names},
        spans=tuple(_manifest_span(work) for work in used),
        exported_rows=sum(file.rows for span in new for file in span.files),
        exported_bytes=sum(file.bytes for span in new for file in span.files),
        seconds=round(seconds, 3),
    )


def _split_of(request: ExportRequest, span: str, part: FilePart) -> str:
    if span == FROZEN_SET:
        return FROZEN_SET
    return "test" if span >= request.test_start else part


def _rows(request: ExportRequest, spans: Sequence[SpanWork], split: str) -> int:
    if split == FROZEN_SET:
        return request.golden.rows if request.golden else 0
    return sum(part.rows for span in spans for part in span.parts if _split_of(request, span.span, part.part) == split)


def _manifest_file(work: Work, file: SpanFile) -> ManifestFile:
    return ManifestFile(
        uri=join_uri(work.folder_uri, file.file_name),
        span=work.span,
        part=file.part,
        rows=file.rows,
        bytes=file.bytes,
        crc32c=file.crc32c,
        sha256=file.sha256,
    )


def _manifest_span(work: SpanWork) -> ManifestSpan:
    rows = sum(part.rows for part in work.parts)
    return ManifestSpan(span=work.span, fingerprint=work.fingerprint, rows=rows, action=work.action, reason=work.reason)
