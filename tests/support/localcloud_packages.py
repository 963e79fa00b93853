"""The packages of the local cloud, a part of the table in `packages`."""

from __future__ import annotations

from tests.support.package import Package

LOCALCLOUD = {
    "localcloud": Package(
        "Google's services on this machine, nothing of this project; at the top what all of them may import", ()
    ),
    "localcloud.access": Package("who calls, and what they may do: accounts, tokens, the IAM table", ("localcloud",)),
    "localcloud.environment": Package(
        "what a program needs so that Google's clients in it come here", ("localcloud", "localcloud.access")
    ),
    "localcloud.http": Package(
        "HTTP/1.1 between clients, the gateway and the servers behind it; what stands before the gateway's services",
        ("localcloud",),
    ),
    "localcloud.storage": Package(
        "Cloud Storage: a request is read once, checked, and answered from files", ("localcloud", "localcloud.http")
    ),
    "localcloud.logs": Package(
        "Cloud Logging, and Cloud Monitoring in `metrics`: what is kept, filters, and the services that list it",
        ("localcloud", "localcloud.access", "localcloud.http"),
    ),
    "localcloud.gateway": Package(
        "the one way in, and what is answered there; Service Usage and Artifact Registry in folders of their own",
        ("localcloud", "localcloud.access", "localcloud.http", "localcloud.storage", "localcloud.logs"),
    ),
    "localcloud.bigquery.language": Package("what GoogleSQL is, apart from other databases' SQL", ("localcloud",)),
    "localcloud.bigquery.types": Package(
        "types of columns, expressions, tables and results", ("localcloud", "localcloud.bigquery.language")
    ),
    "localcloud.bigquery.patches": Package(
        "faults of bqemulator, a file for each",
        ("localcloud", "localcloud.bigquery.language", "localcloud.bigquery.types"),
    ),
    "localcloud.bigquery.files": Package(
        "load and extract jobs: rows from files, and files from rows", ("localcloud", "localcloud.bigquery.types")
    ),
    "localcloud.bigquery.read": Package(
        "the Storage Read API", ("localcloud", "localcloud.bigquery.types", "localcloud.bigquery.patches")
    ),
    "localcloud.bigquery.middleware": Package(
        "what stands before the REST API: faults, the IAM table", ("localcloud", "localcloud.access")
    ),
    "localcloud.bigquery": Package(
        "the server: bqemulator, put right, and started", ("localcloud", "localcloud.access", "localcloud.bigquery.*")
    ),
    "localcloud.supervision": Package(
        "servers as child processes: started, watched and ended together",
        ("localcloud", "localcloud.access", "localcloud.environment"),
    ),
    "localcloud.command": Package(
        "the command line", ("localcloud", "localcloud.access", "localcloud.environment", "localcloud.supervision")
    ),
    "localcloud.testing": Package(
        "a local cloud for as long as a test or a program needs one, also as fixtures of pytest",
        ("localcloud", "localcloud.command", "localcloud.environment", "localcloud.supervision"),
    ),
    "localcloud.__main__": Package("`python -m localcloud`", ("localcloud.command",)),
}
VERTEX = {
    "localcloud.vertex.wire": Package(
        "what goes over the wire: methods, messages, names, refusals, lists", ("localcloud",)
    ),
    "localcloud.vertex.resources": Package(
        "what all families keep and ask: store, buckets, tables, operations, rules of fields, faults",
        ("localcloud", "localcloud.vertex.wire"),
    ),
    "localcloud.vertex.processes": Package(
        "programs on this machine: images, commands, replicas, their lines",
        ("localcloud.environment", "localcloud.logs", "localcloud.vertex.wire", "localcloud.vertex.resources"),
    ),
    "localcloud.vertex.jobs": Package(
        "jobs: what every family of them does, and a folder for each family",
        ("localcloud.vertex.wire", "localcloud.vertex.resources", "localcloud.vertex.processes"),
    ),
    "localcloud.vertex.persistent_resources": Package(
        "machines that stay between jobs", ("localcloud.vertex.wire", "localcloud.vertex.resources")
    ),
    "localcloud.vertex.experiments": Package(
        "what experiments are made of: ML Metadata and TensorBoards",
        ("localcloud.vertex.wire", "localcloud.vertex.resources"),
    ),
    "localcloud.vertex.models": Package(
        "the model registry", ("localcloud.vertex.wire", "localcloud.vertex.resources")
    ),
    "localcloud.vertex.endpoints": Package(
        "endpoints, deployments, predictions, their log and their measurements",
        (
            "localcloud.logs",
            "localcloud.vertex.wire",
            "localcloud.vertex.resources",
            "localcloud.vertex.processes",
        ),
    ),
    "localcloud.vertex.front": Package(
        "where calls come in: gRPC, REST, and who answers",
        ("localcloud", "localcloud.access", "localcloud.vertex.wire", "localcloud.vertex.resources"),
    ),
    "localcloud.vertex": Package(
        "the server: hands each family what it needs, of another one too",
        ("localcloud", "localcloud.access", "localcloud.environment", "localcloud.logs", "localcloud.vertex.*"),
    ),
}
