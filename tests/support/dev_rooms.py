"""The rooms of the local cloud, a part of the table in `house`."""

from __future__ import annotations

from tests.support.room import Room

LOCALCLOUD = {
    "localcloud": Room(
        "Google's services on this machine, nothing of this project; at the top what all of them may import", ()
    ),
    "localcloud.access": Room("who calls, and what they may do: accounts, tokens, the IAM table", ("localcloud",)),
    "localcloud.environment": Room(
        "what a program needs so that Google's clients in it come here", ("localcloud", "localcloud.access")
    ),
    "localcloud.http": Room(
        "HTTP/1.1 between clients, the gateway and the servers behind it; what stands before the gateway's services",
        ("localcloud",),
    ),
    "localcloud.storage": Room(
        "Cloud Storage: a request is read once, checked, and answered from files", ("localcloud", "localcloud.http")
    ),
    "localcloud.logs": Room(
        "Cloud Logging, and Cloud Monitoring in `metrics`: what is kept, filters, and the services that list it",
        ("localcloud", "localcloud.access", "localcloud.http"),
    ),
    "localcloud.gateway": Room(
        "the one door, and what is answered there",
        ("localcloud", "localcloud.access", "localcloud.http", "localcloud.storage", "localcloud.logs"),
    ),
    "localcloud.bigquery.types": Room("types of columns, tables and results", ("localcloud",)),
    "localcloud.bigquery.patches": Room(
        "faults of bqemulator, a file for each", ("localcloud", "localcloud.bigquery.types")
    ),
    "localcloud.bigquery.files": Room(
        "load and extract jobs: rows from files, and files from rows", ("localcloud", "localcloud.bigquery.types")
    ),
    "localcloud.bigquery.read": Room("the Storage Read API", ("localcloud", "localcloud.bigquery.types")),
    "localcloud.bigquery.middleware": Room(
        "what stands before the REST API: faults, the IAM table", ("localcloud", "localcloud.access")
    ),
    "localcloud.bigquery": Room(
        "the server: bqemulator, put right, and started", ("localcloud", "localcloud.access", "localcloud.bigquery.*")
    ),
    "localcloud.supervision": Room(
        "servers as child processes: started, watched and ended together",
        ("localcloud", "localcloud.access", "localcloud.environment"),
    ),
    "localcloud.command": Room(
        "the command line", ("localcloud", "localcloud.access", "localcloud.environment", "localcloud.supervision")
    ),
    "localcloud.__main__": Room("`python -m localcloud`", ("localcloud.command",)),
}
VERTEX = {
    "localcloud.vertex.wire": Room(
        "what goes over the wire: methods, messages, names, refusals, lists", ("localcloud",)
    ),
    "localcloud.vertex.resources": Room(
        "what all families keep and ask: store, buckets, tables, operations, rules of fields, faults",
        ("localcloud", "localcloud.vertex.wire"),
    ),
    "localcloud.vertex.processes": Room(
        "programs on this machine: images, commands, replicas, their lines",
        ("localcloud.environment", "localcloud.logs", "localcloud.vertex.wire", "localcloud.vertex.resources"),
    ),
    "localcloud.vertex.jobs": Room(
        "jobs: what every family of them does, and a folder for each family",
        ("localcloud.vertex.wire", "localcloud.vertex.resources", "localcloud.vertex.processes"),
    ),
    "localcloud.vertex.models": Room("the model registry", ("localcloud.vertex.wire", "localcloud.vertex.resources")),
    "localcloud.vertex.endpoints": Room(
        "endpoints, deployments, predictions, their log and their measurements",
        (
            "localcloud.logs",
            "localcloud.vertex.wire",
            "localcloud.vertex.resources",
            "localcloud.vertex.processes",
        ),
    ),
    "localcloud.vertex.front": Room(
        "where calls come in: gRPC, REST, and who answers",
        ("localcloud", "localcloud.access", "localcloud.vertex.wire", "localcloud.vertex.resources"),
    ),
    "localcloud.vertex": Room(
        "the server: hands each family what it needs, of another one too",
        ("localcloud", "localcloud.access", "localcloud.environment", "localcloud.logs", "localcloud.vertex.*"),
    ),
}
