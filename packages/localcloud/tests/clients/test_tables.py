"""The daily calls of clients of BigQuery's tables and of Vertex AI's studies, by the environment alone, unmodified.

Each script runs in the environment of `../clients/tables.txt`, dbt in that of `../clients/dbt.txt`; what a script
checks itself fails it. They are long tests: `make test-clients`.
"""

from __future__ import annotations

import datetime as dt
import shutil
import uuid
from pathlib import Path

import pytest
from google.cloud import bigquery

from tests.support.client_programs import run_program, run_script

DBT_PROJECT_PATH = Path(__file__).with_name("dbt")

pytestmark = pytest.mark.long

PANDAS_GBQ = """
import datetime, decimal
import pandas as pd, pandas_gbq
from google.cloud import bigquery

client = bigquery.Client(project=PROJECT)
client.create_dataset(f"gbq_{ID}")
table = f"gbq_{ID}.people"
frame = pd.DataFrame(
    {
        "name": ["ann", "bob", None],
        "age": [1, 2, 3],
        "tall": [1.5, 2.5, float("nan")],
        "ok": [True, False, True],
        "seen": pd.to_datetime(["2024-01-01T10:00:00Z", "2024-01-02T10:00:00Z", None], utc=True),
        "born": [datetime.date(2000, 1, 1), None, datetime.date(2001, 2, 3)],
    }
)
pandas_gbq.to_gbq(frame, table, project_id=PROJECT, progress_bar=False)
read = pandas_gbq.read_gbq(f"SELECT * FROM `{table}` ORDER BY age", project_id=PROJECT, progress_bar_type=None)
assert read.name.tolist()[:2] == ["ann", "bob"] and read.name.isna().tolist() == [False, False, True], read
assert read.age.tolist() == [1, 2, 3] and str(read.seen[0]) == "2024-01-01 10:00:00+00:00", read.seen
assert read.ok.tolist() == [True, False, True]
assert str(read.born[2])[:10] == "2001-02-03", read.born
try:
    pandas_gbq.to_gbq(frame, table, project_id=PROJECT, progress_bar=False)
except pandas_gbq.gbq.TableCreationError:
    pass
else:
    raise AssertionError("a table that is there was written over")
pandas_gbq.to_gbq(frame[["name", "age"]], table, project_id=PROJECT, if_exists="append", progress_bar=False)
whole = pandas_gbq.read_gbq(table, project_id=PROJECT, progress_bar_type=None)
assert len(whole) == 6 and whole.tall.isna().sum() == 4, whole
by_api = pandas_gbq.read_gbq(
    f"SELECT age FROM `{table}`", project_id=PROJECT, progress_bar_type=None, use_bqstorage_api=True
)
assert sorted(by_api.age) == [1, 1, 2, 2, 3, 3]
config = {
    "query": {
        "parameterMode": "NAMED",
        "queryParameters": [{"name": "least", "parameterType": {"type": "INT64"}, "parameterValue": {"value": "3"}}],
    }
}
some = pandas_gbq.read_gbq(
    f"SELECT name, age FROM `{table}` WHERE age >= @least",
    project_id=PROJECT,
    configuration=config,
    progress_bar_type=None,
    index_col="age",
)
assert some.index.tolist() == [3, 3]
pandas_gbq.to_gbq(pd.DataFrame({"other": ["x"]}), table, project_id=PROJECT, if_exists="replace", progress_bar=False)
assert pandas_gbq.read_gbq(table, project_id=PROJECT, progress_bar_type=None).to_dict("list") == {"other": ["x"]}
pandas_gbq.to_gbq(frame, f"gbq_{ID}.by_csv", project_id=PROJECT, api_method="load_csv", progress_bar=False)
assert len(pandas_gbq.read_gbq(f"gbq_{ID}.by_csv", project_id=PROJECT, progress_bar_type=None)) == 3
pandas_gbq.to_gbq(
    frame,
    f"gbq_{ID}.chunks",
    project_id=PROJECT,
    chunksize=2,
    progress_bar=False,
    table_schema=[{"name": "age", "type": "NUMERIC"}],
)
assert client.get_table(f"gbq_{ID}.chunks").num_rows == 3
sample = pandas_gbq.sample(f"{PROJECT}.gbq_{ID}.chunks", target_mb=1) if hasattr(pandas_gbq, "sample") else None
assert sample is None or len(sample) == 3
nested = pandas_gbq.read_gbq(
    "SELECT [1, 2] AS a, STRUCT(1 AS x, 'y' AS z) AS s, NUMERIC '1.5' AS n, TIME '10:00:00' AS t,"
    " DATETIME '2024-01-01 00:00:00' AS d",
    project_id=PROJECT,
    progress_bar_type=None,
)
assert list(nested.a[0]) == [1, 2] and nested.s[0] == {"x": 1, "z": "y"} and nested.n[0] == decimal.Decimal("1.5"), (
    nested
)
assert nested.t[0] == datetime.time(10) and str(nested.d[0]) == "2024-01-01 00:00:00", nested
assert pandas_gbq.read_gbq(f"SELECT 1 AS x", project_id=PROJECT, dry_run=True) is not None
try:
    pandas_gbq.read_gbq("SELECT nothing FROM nowhere", project_id=PROJECT, progress_bar_type=None)
except pandas_gbq.gbq.GenericGBQException:
    pass
else:
    raise AssertionError("read from nowhere")
client.delete_dataset(f"gbq_{ID}", delete_contents=True)
"""

SQLALCHEMY = """
import datetime
from sqlalchemy import (
    Boolean,
    Column,
    Date,
    Float,
    Integer,
    MetaData,
    Numeric,
    String,
    TIMESTAMP,
    Table,
    create_engine,
    func,
    inspect,
    select,
    text,
)
from google.cloud import bigquery
from google.cloud.bigquery import dbapi

client = bigquery.Client(project=PROJECT)
dataset = f"sqla_{ID}"
client.create_dataset(dataset)
engine = create_engine(f"bigquery://{PROJECT}/{dataset}")
metadata = MetaData()
people = Table(
    "people",
    metadata,
    Column("name", String),
    Column("age", Integer),
    Column("tall", Float),
    Column("ok", Boolean),
    Column("born", Date),
    Column("seen", TIMESTAMP),
    Column("pay", Numeric),
)
metadata.create_all(engine)
moment = datetime.datetime(2024, 1, 1, 10, tzinfo=datetime.UTC)
with engine.begin() as connection:
    connection.execute(
        people.insert(),
        [
            {
                "name": "ann",
                "age": 1,
                "tall": 1.5,
                "ok": True,
                "born": datetime.date(2000, 1, 1),
                "seen": moment,
                "pay": 1,
            },
            {"name": "b'o`b", "age": 2, "tall": None, "ok": False, "born": None, "seen": None, "pay": None},
        ],
    )
    connection.execute(people.insert().values(name="cy", age=3))
with engine.connect() as connection:
    found = connection.execute(
        select(people.c.name, people.c.seen).where(people.c.age <= 2).order_by(people.c.age)
    ).all()
    assert [tuple(row) for row in found] == [("ann", moment), ("b'o`b", None)], found
    assert connection.execute(
        select(people.c.age).where(people.c.name.in_(["ann", "cy"])).order_by(people.c.age)
    ).scalars().all() == [1, 3]
    assert connection.execute(text("SELECT count(*) FROM people WHERE age > :least"), {"least": 1}).scalar() == 2
    groups = connection.execute(
        select(people.c.ok, func.count().label("n"), func.sum(people.c.age)).group_by(people.c.ok).order_by(people.c.ok)
    ).all()
    assert [tuple(g) for g in groups] == [(None, 1, 3), (False, 1, 2), (True, 1, 1)], groups
    other = people.alias("other")
    joined = connection.execute(
        select(func.count()).select_from(people.join(other, people.c.age < other.c.age))
    ).scalar()
    assert joined == 3
    assert connection.execute(select(people.c.name).order_by(people.c.age).limit(1).offset(1)).scalar() == "b'o`b"
    assert connection.execute(select(people.c.name).where(people.c.name.like("a%"))).scalars().all() == ["ann"]
with engine.begin() as connection:
    assert connection.execute(people.update().where(people.c.age == 3).values(name="dee")).rowcount == 1
    assert connection.execute(people.delete().where(people.c.name == "ann")).rowcount == 1
    assert connection.execute(select(func.count()).select_from(people)).scalar() == 2
look = inspect(engine)
assert look.get_table_names() == ["people"] and look.has_table("people") and not look.has_table("nobody")
assert dataset in look.get_schema_names()
assert [column["name"] for column in look.get_columns("people")] == [c.name for c in people.columns]
with engine.begin() as connection:
    connection.execute(text("CREATE VIEW elders AS SELECT name FROM people WHERE age > 2"))
    assert connection.execute(text("SELECT name FROM elders")).scalars().all() == ["dee"]
assert look.get_view_names() == ["elders"], look.get_view_names()
again = Table("people", MetaData(), autoload_with=engine)
assert len(again.columns) == 7
import pandas as pd

pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}).to_sql("frame", engine, index=False, if_exists="replace")
pd.DataFrame({"a": [3], "b": ["z"]}).to_sql("frame", engine, index=False, if_exists="append")
assert pd.read_sql("SELECT a FROM frame ORDER BY a", engine).a.tolist() == [1, 2, 3]
assert pd.read_sql_table("frame", engine).shape == (3, 2)
connection = dbapi.connect(client)
cursor = connection.cursor()
cursor.execute(
    f"SELECT name FROM {dataset}.people WHERE age >= %(least)s AND name != %(name)s", {"least": 1, "name": "x"}
)
assert sorted(row[0] for row in cursor.fetchall()) == ["b'o`b", "dee"]
cursor.executemany(f"INSERT INTO {dataset}.people (name, age) VALUES (%s, %s)", [("e", 5), ("f", 6)])
cursor.execute(f"SELECT age FROM {dataset}.people WHERE age > %s", (4,))
assert sorted(row[0] for row in cursor.fetchall()) == [5, 6]
connection.close()
metadata.drop_all(engine)
assert not inspect(engine).has_table("people")
client.delete_dataset(dataset, delete_contents=True)
"""

IBIS = """
import datetime
import ibis, pandas as pd
from google.cloud import bigquery

client = bigquery.Client(project=PROJECT)
dataset = f"ibis_{ID}"
con = ibis.bigquery.connect(project_id=PROJECT, dataset_id="")
con.create_database(dataset)
assert dataset in con.list_databases()
con = ibis.bigquery.connect(project_id=PROJECT, dataset_id=dataset)
frame = pd.DataFrame(
    {
        "name": ["ann", "bob", "cy"],
        "age": [1, 2, 3],
        "tall": [1.5, 2.5, None],
        "seen": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-02-03"], utc=True),
    }
)
con.create_table("people", frame)
assert con.list_tables() == ["people"]
people = con.table("people")
assert people.schema()["age"] == ibis.dtype("int64"), people.schema()
assert people.count().execute() == 3
assert people.filter(people.age >= 2).order_by(ibis.desc("age")).select("name").execute().name.tolist() == ["cy", "bob"]
by_month = (
    people.group_by(month=people.seen.truncate("M"))
    .aggregate(n=people.count(), oldest=people.age.max())
    .order_by("month")
)
assert by_month.execute().n.tolist() == [2, 1]
assert people.mutate(twice=people.age * 2, upper=people.name.upper()).order_by("age").execute().twice.tolist() == [
    2,
    4,
    6,
]
ranked = people.mutate(
    rank=ibis.row_number().over(order_by=ibis.desc("age")), before=people.age.lag().over(order_by="age")
)
assert ranked.order_by("age")["rank"].execute().tolist() == [2, 1, 0]
least = ibis.param("int64")
assert people.filter(people.age > least).count().execute(params={least: 1}) == 2
con.insert(
    "people", pd.DataFrame({"name": ["dee"], "age": [4], "tall": [1.0], "seen": [pd.Timestamp("2024-03-01", tz="UTC")]})
)
assert people.count().execute() == 4
con.insert("people", frame, overwrite=True)
assert people.count().execute() == 3
con.create_table("copy", people.filter(people.age < 3))
con.create_view("elders", people.filter(people.age > 2))
assert con.table("elders").execute().name.tolist() == ["cy"]
assert sorted(con.list_tables()) == ["copy", "elders", "people"]
joined = people.join(con.table("copy"), "name").select(people.name, other=con.table("copy").age)
assert joined.count().execute() == 2
assert people.to_pyarrow().num_rows == 3
assert sum(batch.num_rows for batch in people.to_pyarrow_batches()) == 3
assert con.sql(f"SELECT count(*) AS n FROM {dataset}.people").execute().n[0] == 3
memory = ibis.memtable({"name": ["ann", "cy"], "city": ["x", "y"]})
assert people.join(memory, "name").count().execute() == 2
struct = con.sql("SELECT STRUCT(1 AS a, 'b' AS b) AS s, [1, 2] AS l")
assert struct.mutate(a=struct.s.a, n=struct.l.length()).execute().n[0] == 2
assert people.age.nunique().execute() == 3
con.create_table("made", schema=ibis.schema({"a": "int64", "b": "string", "c": "array<int64>"}))
con.create_table("made", schema=ibis.schema({"a": "int64"}), overwrite=True)
con.truncate_table("made", database=dataset)
con.drop_view("elders", database=dataset)
con.drop_table("made", database=dataset)
assert [tuple(row) for row in con.raw_sql("SELECT 1 AS x")] == [(1,)]
con.drop_database(dataset, cascade=True)
assert dataset not in con.list_databases()
"""

VIZIER = """
from google.cloud import aiplatform
from google.cloud.aiplatform.vizier import Study, Trial, pyvizier

aiplatform.init(project=PROJECT, location=REGION)
problem = pyvizier.StudyConfig()
problem.algorithm = pyvizier.Algorithm.RANDOM_SEARCH
root = problem.search_space.root
root.add_float_param("rate", 0.001, 1.0, scale_type=pyvizier.ScaleType.LOG)
root.add_int_param("layers", 1, 4)
root.add_categorical_param("kind", ["a", "b"])
problem.metric_information.append(pyvizier.MetricInformation(name="score", goal=pyvizier.ObjectiveMetricGoal.MAXIMIZE))
study = Study.create_or_load(display_name=f"study-{ID}", problem=problem)
again = Study.create_or_load(display_name=f"study-{ID}", problem=problem)
assert again.name == study.name, (again.name, study.name)
for _ in range(2):
    for trial in study.suggest(count=2, worker="w"):
        parameters = trial.parameters if hasattr(trial, "parameters") else trial.materialize().parameters
        rate = parameters["rate"].value
        assert 0.001 <= rate <= 1.0
        trial.add_measurement(pyvizier.Measurement(metrics={"score": rate / 2}, steps=1))
        assert trial.should_stop() in (True, False)
        done = trial.complete(measurement=pyvizier.Measurement(metrics={"score": rate}, steps=2))
trials = study.trials()
assert len(trials) == 4, trials
(best,) = study.optimal_trials()
best = best.materialize()
assert best.final_measurement.metrics["score"].value == max(
    t.materialize().final_measurement.metrics["score"].value for t in trials
)
(hopeless,) = study.suggest(count=1, worker="w")
hopeless.complete(infeasible_reason="broken")
assert [s.display_name for s in Study.list() if s.display_name == f"study-{ID}"] == [f"study-{ID}"]
trials[0].delete()
assert len(study.trials()) == 4
study.delete()
assert f"study-{ID}" not in [s.display_name for s in Study.list()]
"""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(PANDAS_GBQ, id="pandas-gbq"),
        pytest.param(SQLALCHEMY, id="sqlalchemy and DB-API"),
        pytest.param(IBIS, id="ibis"),
        pytest.param(VIZIER, id="vizier"),
    ],
)
def test_a_python_client(local_cloud, script):
    """Makes, fills, reads, changes, lists and drops, in its own way."""
    run_script(local_cloud, "tables", script)


def test_dbt(local_cloud, tmp_path):
    """Builds seeds, models, a snapshot and their tests; then again, when incremental models add and replace."""
    project_path, dataset = tmp_path / "shop", f"dbt_{uuid.uuid4().hex[:12]}"
    shutil.copytree(DBT_PROJECT_PATH, project_path)
    client = bigquery.Client(project=local_cloud.project)
    settings = {"SHOP_DATASET": dataset, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}

    def build() -> None:
        run_program(
            local_cloud, "dbt/bin/dbt", "--no-use-colors", "build", "--profiles-dir", ".", cwd=project_path, **settings
        )

    def rows(sql: str) -> list[tuple[object, ...]]:
        return [tuple(row.values()) for row in client.query_and_wait(sql.replace("$", dataset))]

    build()
    assert rows("SELECT id, name FROM $.elders ORDER BY id") == [(2, "BOB"), (3, "CY")]
    ((first,),) = rows("SELECT loaded FROM $.growing WHERE id = 3")
    client.query_and_wait(f"UPDATE {dataset}.days SET id = -id WHERE TRUE")
    people = project_path / "seeds" / "people.csv"
    people.write_text(people.read_text() + "4,dee,2004-04-04\n")
    build()
    assert rows("SELECT name, n FROM $.seen ORDER BY name") == [("BOB", 1), ("CY", 1), ("DEE", 1)]
    assert rows("SELECT id, loaded > @first FROM $.growing ORDER BY id".replace("@first", f"TIMESTAMP '{first}'")) == [
        (1, False),
        (2, False),
        (3, True),
        (4, True),
    ]
    assert rows("SELECT id, day FROM $.days ORDER BY day") == [
        (1, dt.date(2000, 1, 1)),
        (-2, dt.date(2001, 1, 1)),
        (-3, dt.date(2002, 2, 2)),
    ]
    assert rows("SELECT COUNT(*) FROM $.people_history WHERE dbt_valid_to IS NULL") == [(4,)]
    client.delete_dataset(dataset, delete_contents=True)
