"""From complete spans to the run's manifest: which file belongs to which split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainer.documents import ExportRequest, Manifest, ManifestFile, ManifestSpan, ManifestSplit, Span, SpanWork
from trainer.storage import join


def build_manifest(request: ExportRequest, spans: Sequence[Span], seconds: float) -> Manifest:
    """Sort the spans' files into splits: all parts of a span from `test_start` on are test, else each its part."""
    files: dict[str, list[ManifestFile]] = {"train": [], "validation": [], "test": []}
    for span, work in zip(spans, request.spans, strict=True):
        for file in span.files:
            split = "test" if work.span >= request.test_start else file.part
            folder = join(request.spans_uri, work.span, work.fingerprint)
            proof: dict[str, Any] = {
                "rows": file.rows,
                "bytes": file.bytes,
                "crc32c": file.crc32c,
                "sha256": file.sha256,
            }
            files[split].append(ManifestFile(uri=join(folder, file.file_name), span=work.span, part=file.part, **proof))
    new = [span for span, work in zip(spans, request.spans, strict=True) if work.action == "export"]
    return Manifest(
        model=request.model,
        run_key=request.run_key,
        schema_hash=request.schema_hash,
        compression=request.compression,
        schema=request.schema,
        table=request.table,
        format=request.format,
        layout=request.layout,
        images=request.images,
        quarantined=request.quarantined,
        splits={
            name: ManifestSplit(rows=sum(file.rows for file in chosen), files=tuple(chosen))
            for name, chosen in files.items()
        },
        spans=tuple(_manifest_span(work) for work in request.spans),
        exported_rows=sum(file.rows for span in new for file in span.files),
        exported_bytes=sum(file.bytes for span in new for file in span.files),
        seconds=round(seconds, 3),
    )


def _manifest_span(work: SpanWork) -> ManifestSpan:
    rows = sum(part.rows for part in work.parts)
    return ManifestSpan(
        span=work.span, fingerprint=work.fingerprint, rows=rows, action=work.action, because=work.because
    )
