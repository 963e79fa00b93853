"""Images as objects: the listing of their folders as a table, and each row's address with what it says of the object.

In: a plan whose images have `objects`. Out: SQL that writes `gs://bucket/name#generation,bytes` into the run table, so
that a span's fingerprint covers what lies at each address: an object that was written again makes its spans new, and
the export reads the generation that was counted. Of an object that no training can read, what is wrong with it stands
behind the `#` (see `image_objects.sql.j2`), and `check_data` counts these.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from retraining.core.data.span_store import StoredObject
from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents.plan import Plan
from retraining.core.errors import DataError
from retraining.core.naming import bigquery
from retraining.core.spec.features import ImageFeature
from retraining.core.spec.model import ModelSpec

WHERE = "objects of images"
MAX_BYTES = 100_000_000
"""Of an object: larger is no photograph."""

COLUMNS = {"uri": "STRING", "generation": "INT64", "bytes": "INT64", "content_type": "STRING"}
"""Of the listing, with their types."""


def image_objects(spec: ModelSpec) -> tuple[ImageFeature, ...]:
    """Return the features whose images are objects."""
    return tuple(feature for feature in spec.features if feature.kind == "image" and feature.objects)


def folders_to_list(spec: ModelSpec) -> list[str]:
    """Return their folders, without those that are in another one; a slash is not at the end."""
    folders = {str(feature.objects) for feature in image_objects(spec)}
    outer = [name for name in folders if not any(name != other and name.startswith(other) for other in folders)]
    return sorted(name.rstrip("/") for name in outer)


def require_addresses(spec: ModelSpec, schema: Iterable[Mapping[str, Any]], where: str) -> None:
    """Refuse columns that cannot have addresses, before any is joined with the listing.

    Args:
        spec: Of the model.
        schema: Of the examples query.
        where: Names the query.

    Raises:
        DataError: One cannot.
    """
    types = {column["name"]: (column["type"], column["mode"]) for column in schema}
    for image in image_objects(spec):
        type_, mode = types.get(image.name, ("STRING", "NULLABLE"))  # a missing column is refused for all features
        if type_ != "STRING" or mode == "REPEATED":
            raise DataError(
                f"{where}, column {image.name}",
                f"{type_} {mode}" if mode == "REPEATED" else str(type_),
                "STRING: with objects it has the address of each image, gs://bucket/name",
                "Select the addresses; or, where the column has the images' bytes, remove objects from the feature",
            )


def render_objects_table_sql(plan: Plan) -> Query:
    """Return the statement that makes the empty table of the listing, which expires as the run table does."""
    table, days = bigquery.objects_table(plan), plan.spec.data.keep_table_days
    return Query(sql=render("objects_table.sql.j2", table=table, columns=COLUMNS, keep_days=days))


def write_listing(file: IO[bytes], objects: Iterable[StoredObject], folders: Sequence[str]) -> str:
    """Write JSON lines of the objects, compressed; return a SHA-256 over them.

    Raises:
        DataError: There are none.
    """
    digest, count = hashlib.sha256(), 0
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as lines:
        for item in objects:
            values = (item.uri, item.generation, item.bytes, item.content_type)
            line = json.dumps(dict(zip(COLUMNS, values, strict=True)), ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            lines.write(line)
            count += 1
    if not count:
        raise DataError(
            WHERE,
            f"no object in {', '.join(folders)}",
            "images",
            "Correct objects of the feature, or have the images written, and clear the task. The account must be able "
            "to list them",
        )
    return digest.hexdigest()


def with_objects(sql: str, plan: Plan) -> str:
    """Return the examples query with what the listing says of each address; unchanged where no image is an object."""
    images = image_objects(plan.spec)
    if not images:
        return sql
    return render("image_objects.sql.j2", query=sql, table=bigquery.objects_table(plan), images=images)


def object_parameters(spec: ModelSpec) -> tuple[Parameter, ...]:
    """Return what that query names: the folders, and how large an object may be."""
    images = image_objects(spec)
    folders = (
        Parameter(name=f"objects_{index}", type="STRING", value=str(image.objects))
        for index, image in enumerate(images)
    )
    most = (Parameter(name="most_object_bytes", type="INT64", value=MAX_BYTES),) if images else ()
    return (*folders, *most)


def stored_bytes(spec: ModelSpec) -> int:
    """Return how many bytes a row's images have at most once they are resized: its text in the run table is short."""
    return sum(image.height * image.width * image.channels for image in image_objects(spec))
