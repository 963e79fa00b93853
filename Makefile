# `make help` lists every target with its variables. Two commands are enough to start: `make demo`, `make test`.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
KEEP ?= 1
V ?= 0
PORT ?= 8080
AS_OF ?=
MONTHS ?= 3
STATE ?= build/localcloud
ROUNDS ?= 5
SEEDS ?= 5
MODELS ?= 20
SLOTS ?= 4
JOBS ?= separate
START_S ?= 0
QUOTA ?= 0
RAMPS ?= 100
SETS ?=
SUITES ?=
RECORD ?= 0
QUICK ?=
TRAINER_ENV ?= trainer
AIRFLOW_ENV ?= airflow
SCALE ?= 1
FRAMEWORK ?= 2.15
TEST ?= tests/core
NAME ?=
TABLE ?=
FILES ?=
LABEL ?=
KEY ?=
TIME ?=
FROM ?=
TO ?=
SCHEMA ?=
ENV ?=
BUCKET ?=
DRY ?= 0
FORCE ?= 0
MODEL ?=
IMAGE ?=
RUN ?=
RUNS ?=
DO ?= models
PICTURES ?=
# Where this is set, each of the many processes of a test or demonstration would compile Airflow and Google's clients.
unexport PYTHONDONTWRITEBYTECODE

comma := ,
space := $(subst ,, )
VENV := .venv
# Where the programs beside Airflow are found: the demonstration and its kind, the local cloud, the benchmarks.
DEV := dev:packages/localcloud/src:packages/laptop/src:packages/bench/src
UV := $(or $(shell command -v uv 2>/dev/null),$(VENV)/uv/bin/uv)
AIRFLOW_PY := $(VENV)/airflow/bin/python
FLOOR_WARNINGS := -W default  # the floor's old libraries warn of what nobody mends there
AIRFLOW_WARNINGS := $(if $(filter floor,$(AIRFLOW_ENV)),$(FLOOR_WARNINGS))
TRAINER_PY := $(VENV)/trainer/bin/python
LOCALCLOUD_PY := $(VENV)/localcloud/bin/python
OTHER := $(VENV)/trainer-$(notdir $(PYTHON))
INSTALL := $(UV) pip sync --quiet --require-hashes --python
FLOOR_DATE := 2026-03-20
UNIT_TESTS := tests/core tests/dags tests/hooks tests/operators tests/web tests/commands packages/bench/tests tests/dev/contracts tests/ci tests/dev/compose tests/dev/wheels tests/test_architecture.py tests/test_docs.py tests/test_readability.py
TOOL_TESTS := tests/commands tests/dev
FLOOR_BESIDE := tests/core tests/web tests/commands
FLOOR_FIRST := tests/hooks tests/operators tests/dags
FLOOR_PYTEST = $(VENV)/floor/bin/python -m pytest -q $(FLOOR_WARNINGS) -m "not long"
FLOOR_TESTS := $(FLOOR_BESIDE) $(FLOOR_FIRST)
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.PHONY: help
help: ## List the targets, with their variables
	@awk '/^# --- / { gsub(/^# -+ | -+$$/, ""); print "\n" $$0 } \
	  /^[a-z-]+:.*## / { line = sprintf("  %-20s", substr($$1, 1, index($$1, ":") - 1)); sub(/^[^#]*## /, ""); \
	    for (i = 1; i <= NF; i++) { if (length(line " " $$i) > 120) { print line; line = sprintf("%22s", "") } line = line " " $$i } \
	    print line }' $(MAKEFILE_LIST)

# --- environments ---------------------------------------------------------------------------------------------------

.PHONY: setup
setup: $(VENV)/airflow/.ready $(VENV)/trainer/.ready $(VENV)/localcloud/.ready ## Make the three environments in .venv/ (demo and test do it as needed; PYTHON=python3.13 chooses the interpreter, 3.11 to 3.13)

$(VENV)/python.ok:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12), (3, 13)))' 2>/dev/null || { \
	  echo "make: PYTHON=$(PYTHON) is $$($(PYTHON) --version 2>&1 | head -n 1); expected Python 3.11, 3.12 or 3.13. Name one that is: make PYTHON=python3.11 …" >&2; exit 2; }
	@mkdir -p $(VENV) && touch $@

$(VENV)/uv/bin/uv: requirements-uv.txt | $(VENV)/python.ok
	@echo "setup: uv goes into $(VENV)/uv"
	@$(PYTHON) -m venv $(VENV)/uv
	@$(VENV)/uv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.txt
	@touch $@

$(VENV)/airflow/.ready: requirements.txt requirements-dev.txt
$(VENV)/trainer/.ready: trainer/requirements.txt trainer/requirements-dev.txt
$(OTHER)/.ready: trainer/requirements.txt trainer/requirements-dev.txt
$(VENV)/tfio/.ready: trainer/requirements-tfio.txt trainer/requirements-dev.txt
$(VENV)/tfjs/.ready: trainer/requirements-tfjs.txt
$(VENV)/sklearn/.ready: examples/sklearn/image/requirements.txt
$(VENV)/xgboost/.ready: examples/xgboost/image/requirements.txt
$(VENV)/localcloud/.ready: dev/requirements.txt
$(VENV)/tuning/.ready: packages/localcloud/src/localcloud/tuning-requirements.txt
$(VENV)/bench-tfx/.ready: packages/bench/requirements-tfx.txt
$(VENV)/bench-models/.ready: packages/bench/requirements-models.txt
$(VENV)/bench-drift/.ready: packages/bench/requirements-drift.txt
$(VENV)/bench-emulators/.ready: packages/bench/requirements-emulators.txt
$(VENV)/tfdv/.ready: dev/tfdv/requirements.txt
$(VENV)/floor/.ready: requirements-floor.txt
$(VENV)/containers/.ready: dev/containers/requirements.txt
$(VENV)/lineage/.ready: requirements.txt requirements-lineage.txt
$(VENV)/mlflow/.ready: requirements-mlflow.txt
$(VENV)/clients/.ready: packages/localcloud/clients/requirements.txt
$(VENV)/gsutil/.ready: packages/localcloud/clients/gsutil.txt
$(VENV)/tables/.ready: packages/localcloud/clients/tables.txt
$(VENV)/dbt/.ready: packages/localcloud/clients/dbt.txt
$(VENV)/conformance/.ready: packages/localcloud/conformance/requirements.txt
$(VENV)/conformance-dbt/.ready: packages/localcloud/conformance/dbt.txt
$(VENV)/conformance-ibis/.ready: packages/localcloud/conformance/ibis.txt
$(VENV)/audit/.ready: requirements-audit.txt

$(VENV)/%/.ready: | $(VENV)/python.ok $(UV)
	@echo "setup: environment $*"
	@test -x $(@D)/bin/python || $(UV) venv --quiet --no-project --python $(PYTHON) $(@D)
	@$(INSTALL) $(@D)/bin/python $^
	@touch $@

.PHONY: tuning-env
tuning-env: $(VENV)/tuning/.ready ## Make the environment of the local cloud's tuner, Open Source Vizier with JAX (demo and test do it)

# TensorFlow 2.16 has no Python 3.13: the tests of that reader are left out there.
TFIO_ENV := $(shell $(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 13))' 2>/dev/null && echo $(VENV)/tfio/.ready)
.PHONY: tfio-env
tfio-env: $(VENV)/tfio/.ready ## Make the environment of training.reader tensorflow_io: TensorFlow 2.16, Python 3.11 or 3.12 (test does it)

# Nor has TensorFlow 2.19, of the converter to TensorFlow.js.
TFJS_ENV := $(TFIO_ENV:%/tfio/.ready=%/tfjs/.ready)
# TensorFlow Data Validation has Python 3.11 alone: its test is left out elsewhere.
TFDV_ENV := $(shell $(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 12))' 2>/dev/null && echo $(VENV)/tfdv/.ready)

CLIENT_ENVS := $(patsubst %,$(VENV)/%/.ready,clients gsutil tables dbt)
FRAMEWORK_ENVS := $(VENV)/sklearn/.ready $(VENV)/xgboost/.ready
.PHONY: frameworks-env
frameworks-env: $(FRAMEWORK_ENVS) ## Make the environments of the examples with scikit-learn and XGBoost (test does it)

.PHONY: lock
lock: | $(UV) ## Resolve the *.in files again into hash-locked requirements
	$(COMPILE) --upgrade requirements.in -o requirements.txt
	$(COMPILE) --upgrade requirements-dev.in -o requirements-dev.txt
	$(COMPILE) --upgrade --overrides trainer/overrides.txt trainer/requirements.in -o trainer/requirements.txt
	$(COMPILE) --upgrade trainer/requirements-gpu.in -o trainer/requirements-gpu.txt
	$(COMPILE) --upgrade --overrides trainer/overrides.txt trainer/requirements-tfio.in -o trainer/requirements-tfio.txt
	$(COMPILE) --upgrade trainer/requirements-tfjs.in -o trainer/requirements-tfjs.txt
	$(COMPILE) --upgrade trainer/requirements-dev.in -o trainer/requirements-dev.txt
	$(COMPILE) --upgrade packages/localcloud/pyproject.toml dev/demo/requirements.in -o dev/requirements.txt
	$(COMPILE) --upgrade packages/localcloud/src/localcloud/tuning-requirements.in -o packages/localcloud/src/localcloud/tuning-requirements.txt
	$(COMPILE) --upgrade dev/containers/requirements.in -o dev/containers/requirements.txt
	$(COMPILE) --upgrade --no-deps dev/containers/airflow-requirements.in -o dev/containers/airflow-requirements.txt
	$(COMPILE) --upgrade examples/sklearn/image/requirements.in -o examples/sklearn/image/requirements.txt
	$(COMPILE) --upgrade examples/xgboost/image/requirements.in -o examples/xgboost/image/requirements.txt
	$(COMPILE) --upgrade packages/bench/requirements-tfx.in -o packages/bench/requirements-tfx.txt
	$(COMPILE) --upgrade --overrides packages/bench/requirements-models-overrides.txt packages/bench/requirements-models.in -o packages/bench/requirements-models.txt
	$(COMPILE) --upgrade packages/bench/requirements-drift.in -o packages/bench/requirements-drift.txt
	$(COMPILE) --upgrade packages/bench/requirements-emulators.in -o packages/bench/requirements-emulators.txt
	$(COMPILE) --upgrade dev/tfdv/requirements.in -o dev/tfdv/requirements.txt
	$(COMPILE) --upgrade packages/localcloud/clients/requirements.in -o packages/localcloud/clients/requirements.txt
	$(COMPILE) --upgrade packages/localcloud/clients/gsutil.in -o packages/localcloud/clients/gsutil.txt
	$(COMPILE) --upgrade packages/localcloud/clients/tables.in -o packages/localcloud/clients/tables.txt
	$(COMPILE) --upgrade packages/localcloud/clients/dbt.in -o packages/localcloud/clients/dbt.txt
	$(COMPILE) --upgrade packages/localcloud/conformance/requirements.in -o packages/localcloud/conformance/requirements.txt
	$(COMPILE) --upgrade packages/localcloud/conformance/dbt.in -o packages/localcloud/conformance/dbt.txt
	$(COMPILE) --upgrade packages/localcloud/conformance/ibis.in -o packages/localcloud/conformance/ibis.txt
	$(COMPILE) --upgrade --exclude-newer $(FLOOR_DATE) requirements-floor.in -o requirements-floor.txt
	$(COMPILE) --upgrade --no-deps requirements-lineage.in -o requirements-lineage.txt
	$(COMPILE) --upgrade requirements-mlflow.in -o requirements-mlflow.txt
	$(COMPILE) --upgrade requirements-audit.in -o requirements-audit.txt
	echo 'uv' | $(COMPILE) --upgrade - -o requirements-uv.txt

# --- run it ---------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: setup tuning-env ## Retrain the flights model for one night, whole, on this machine (KEEP=0 ends by itself, V=1 shows job logs, PORT=8080, AS_OF=2013-11-20T03:00:00Z)
	@PYTHONPATH=$(DEV) exec $(LOCALCLOUD_PY) -m demo --port $(PORT) $(if $(filter 0,$(KEEP)),--end) $(if $(filter 1,$(V)),--verbose) $(if $(AS_OF),--as-of $(AS_OF))

.PHONY: demo-ramp
demo-ramp: setup ## Run two nights: the second one's version takes the traffic in steps while customers ask, and the gates are printed (10 min; KEEP=0, PORT=8080)
	@PYTHONPATH=$(DEV) exec $(LOCALCLOUD_PY) -m demo --ramp --home build/ramp --port $(PORT) $(if $(filter 0,$(KEEP)),--end)

.PHONY: demo-year
demo-year: setup ## Replay months of 2013 in fast motion: customers, late labels, an outage, a drift, the retraining that the monitor orders; ends with a picture, build/year/year.html (half an hour; MONTHS=3, KEEP=0, PORT=8080; dev/demo/README.md)
	@rm -rf build/year
	@PYTHONPATH=$(DEV) exec $(LOCALCLOUD_PY) -m demo --months $(MONTHS) --home build/year --port $(PORT) $(if $(filter 0,$(KEEP)),--end)

.PHONY: demo-env
demo-env: $(VENV)/localcloud/.ready ## Print the environment of a shell beside the demonstration, for airflow and Google's clients: eval "$(make -s demo-env)"
	@PYTHONPATH=$(DEV) $(LOCALCLOUD_PY) -m demo.shell

.PHONY: localcloud-up localcloud-env localcloud-down
localcloud-up: $(VENV)/localcloud/.ready $(VENV)/trainer/.ready ## Start the local cloud alone, in the foreground (STATE=build/localcloud)
	@PYTHONPATH=$(DEV) exec $(LOCALCLOUD_PY) -m localcloud up --state $(STATE) --config dev/demo/localcloud.json
localcloud-env: $(VENV)/localcloud/.ready ## Print the environment that points Google's clients at the local cloud (STATE=build/localcloud)
	@PYTHONPATH=$(DEV) $(LOCALCLOUD_PY) -m localcloud env --state $(STATE)
localcloud-down: $(VENV)/localcloud/.ready ## Stop the local cloud (STATE=build/localcloud)
	@PYTHONPATH=$(DEV) $(LOCALCLOUD_PY) -m localcloud down --state $(STATE)

# --- models ---------------------------------------------------------------------------------------------------------

.PHONY: new-model
new-model: $(VENV)/airflow/.ready ## Write a first YAML and SQL of a model from a look at its table (NAME=; TABLE=dataset.table or FILES='gs://…/*.csv'; LABEL=; KEY= of one column or several with commas, left out: a hash of the row; TIME=, left out: examples without a time; RETRAINING_PROJECT, RETRAINING_REGION and, of files, RETRAINING_DATASET say where)
	@PYTHONPATH=plugins $(AIRFLOW_PY) -m retraining new-model --name '$(NAME)' --table '$(TABLE)' --files '$(FILES)' --dataset '$(RETRAINING_DATASET)' --label '$(LABEL)' --key '$(KEY)' --time '$(TIME)' --project '$(RETRAINING_PROJECT)' --region '$(RETRAINING_REGION)'

.PHONY: tfrecords-to-parquet
tfrecords-to-parquet: $(VENV)/trainer/.ready ## Make Parquet files of TFRecord files, which BigQuery does not load, and print data.files for them (FROM='gs://…/*.tfrecord', TO=gs://…; SCHEMA='id:STRING, pixels:FLOAT64[784]' where a look at the first does not do; docs/data.md)
	@TF_CPP_MIN_LOG_LEVEL=3 exec $(TRAINER_PY) -m trainer.tools.tfrecords --from '$(FROM)' --to '$(TO)' --schema '$(SCHEMA)'

.PHONY: preview
preview: $(VENV)/airflow/.ready ## Plan, snapshot and checks of a run without Airflow: rows, splits, findings, cost; nothing is kept (MODEL=, AS_OF=)
	@PYTHONPATH=plugins $(AIRFLOW_PY) -m retraining preview '$(MODEL)' --as-of '$(AS_OF)'

.PHONY: retraining
retraining: $(VENV)/airflow/.ready ## Run the command line for daily use, docs/operations.md (DO='models', the default, 'runs MODEL', 'why MODEL', 'score MODEL', 'compare RUN RUN', 'replay RUN', 'run MODEL')
	@PYTHONPATH=plugins $(AIRFLOW_PY) -m retraining $(DO)

.PHONY: tensorboard
tensorboard: $(VENV)/trainer/.ready ## Show several runs of a model in TensorBoard (MODEL=, RUNS='KEY KEY', RETRAINING_BUCKET; PORT=6006; docs/operations.md)
	@test -n '$(MODEL)' -a -n '$(RUNS)' -a -n '$(RETRAINING_BUCKET)' || { echo "make: expected MODEL=…, RUNS='KEY KEY' and RETRAINING_BUCKET. DO='runs MODEL' lists the keys" >&2; exit 2; }
	@TF_CPP_MIN_LOG_LEVEL=3 exec $(TRAINER_PY) -m tensorboard.main --port $(or $(filter-out 8080,$(PORT)),6006) --logdir_spec '$(subst $(space),$(comma),$(foreach run,$(RUNS),$(run):gs://$(or $(RETRAINING_RESULTS_BUCKET),$(RETRAINING_BUCKET))/jobs/$(MODEL)/runs/$(run)/training/logs))'

.PHONY: tfjs tfdv
tfjs: $(VENV)/tfjs/.ready ## Convert a run's model for TensorFlow.js, for browsers and Node, into its folder training/tfjs (MODEL=, RUN=, RETRAINING_BUCKET; Python 3.11 or 3.12; docs/models.md)
	@test -n '$(MODEL)' -a -n '$(RUN)' -a -n '$(RETRAINING_BUCKET)' || { echo "make: expected MODEL=…, RUN=… and RETRAINING_BUCKET. DO='runs MODEL' lists the keys" >&2; exit 2; }
	@TF_CPP_MIN_LOG_LEVEL=3 TF_USE_LEGACY_KERAS=1 $(VENV)/tfjs/bin/python -m trainer.tools.tfjs gs://$(RETRAINING_BUCKET)/$(MODEL)/runs/$(RUN)
tfdv: $(VENV)/tfdv/.ready ## Let TensorFlow Data Validation look at a run's schema, statistics and shards (MODEL=, RUN=, RETRAINING_BUCKET; Python 3.11; docs/types.md)
	@test -n '$(MODEL)' -a -n '$(RUN)' -a -n '$(RETRAINING_BUCKET)' || { echo "make: expected MODEL=…, RUN=… and RETRAINING_BUCKET. DO='runs MODEL' lists the keys" >&2; exit 2; }
	@PYTHONPATH=$(DEV) TF_CPP_MIN_LOG_LEVEL=3 $(VENV)/tfdv/bin/python -m tfdv gs://$(RETRAINING_BUCKET)/$(MODEL)/runs/$(RUN)

# --- checks ---------------------------------------------------------------------------------------------------------

# Two commands side by side: the second one's output comes after that of the first. Fails where one does.
two_lanes = mkdir -p build; $(2) >build/$@-beside.log 2>&1 & beside=$$!; \
  $(1) & first=$$!; \
  trap 'kill $$beside $$first 2>/dev/null || true' EXIT; trap 'exit 130' INT TERM; \
  failed=0; wait $$first || failed=$$?; wait $$beside || failed=$$?; cat build/$@-beside.log; exit $$failed

.PHONY: test test-trainer test-nights test-tools
test: setup tuning-env $(TFIO_ENV) $(FRAMEWORK_ENVS) ## Run the suite but for what takes minutes, in two lanes
	@echo "test: the trainer's tests, the nights and the tools' tests run beside the others; their output comes after"
	@$(call two_lanes,$(AIRFLOW_PY) -m pytest -m "not long" $(addprefix --ignore ,tests/trainer tests/e2e $(TOOL_TESTS)),$(MAKE) --no-print-directory --keep-going test-trainer test-nights test-tools)
test-tools: setup tuning-env ## Run the tests of the commands, and of what the development tools do
	@$(AIRFLOW_PY) -m pytest -m "not long" $(TOOL_TESTS)
test-trainer: setup $(TFIO_ENV) $(FRAMEWORK_ENVS) ## Run the trainer's tests
	@$(TRAINER_PY) -m pytest -m "not long" tests/trainer
test-nights: setup tuning-env $(VENV)/$(AIRFLOW_ENV)/.ready ## Run whole nights under a real scheduler (AIRFLOW_ENV=floor: of Airflow 3.1.7)
	@$(VENV)/$(AIRFLOW_ENV)/bin/python -m pytest $(AIRFLOW_WARNINGS) -m "not long" --durations 10 tests/e2e

.PHONY: test-python
test-python: $(OTHER)/.ready $(VENV)/localcloud/.ready $(TFIO_ENV) $(FRAMEWORK_ENVS) ## Run the trainer's tests on another Python, in an environment of its own from the same locks (PYTHON=python3.12)
	@$(OTHER)/bin/python -m pytest -m "not long" tests/trainer

.PHONY: test-localcloud test-bench
test-localcloud: setup tuning-env ## Run the local cloud's own tests
	@$(AIRFLOW_PY) -m pytest -m "not long" packages/localcloud/tests
test-bench: setup ## Run the benchmarks' tests
	@$(AIRFLOW_PY) -m pytest -m "not long" packages/bench/tests

.PHONY: test-unit test-one test-floor
test-unit: $(VENV)/airflow/.ready ## Run what needs no server: core, DAGs, operators, docs (under a minute)
	@$(AIRFLOW_PY) -m pytest -q -m "not long and not cloud and not e2e" $(UNIT_TESTS)
test-one: setup ## Run one test, file or folder in the environment that it needs (TEST=tests/core/promotion/test_gates.py::test_name)
	@$(if $(filter tests/trainer%,$(TEST)),$(TRAINER_PY),$(AIRFLOW_PY)) -m pytest $(TEST)
test-floor: setup $(VENV)/floor/.ready ## Run core, hooks, operators and DAGs on Airflow 3.1.7, the oldest that is supported, in an environment of its own, in two lanes
	@$(call two_lanes,$(FLOOR_PYTEST) $(FLOOR_FIRST),$(FLOOR_PYTEST) $(FLOOR_BESIDE))

.PHONY: test-faults
test-faults: setup tuning-env ## Let something happen at every call of every task of a night, a ramp, a rollback, a monitor and a scoring (a worker dies, a server is silent, an answer is lost, another worker comes), to Google's operators beside ours, and to jobs on full disks; print what is paid, lost, left and served (docs/reliability.md). Stopped, it goes on with the files of tests that had not passed at this commit
	@$(call two_lanes,$(AIRFLOW_PY) -m pytest -q -m long $(GO_ON) $(addprefix tests/operators/,jobs/test_paid_once.py runs/test_deaths_elsewhere.py),$(AIRFLOW_PY) -m pytest -q -m long $(if $(GO_ON),$(GO_ON)-nights) tests/operators/runs/test_deaths.py)
	@$(TRAINER_PY) -m pytest -q -m long $(if $(GO_ON),$(GO_ON)-disks) tests/trainer/test_full_disks.py

.PHONY: test-lineage
test-lineage: setup $(VENV)/lineage/.ready ## Run a DAG with Airflow's OpenLineage provider, in an environment of its own, and look at its events (3 min; docs/composer.md)
	@$(UV) pip check --quiet --python $(VENV)/lineage/bin/python
	@$(AIRFLOW_PY) -m pytest -m long tests/operators/airflow/test_lineage_events.py

.PHONY: test-mlflow
test-mlflow: setup $(VENV)/mlflow/.ready ## Show runs in MLflow's own server, in an environment of its own, and read them by MLflow's client (3 min; docs/operations.md)
	@$(AIRFLOW_PY) -m pytest -m long tests/hooks/test_mlflow_server.py

.PHONY: test-clients
test-clients: setup $(CLIENT_ENVS) ## Run the daily calls of the clients that people use beside the project's own (gcsfs, smart_open, pyarrow, gsutil, Cloud Logging, gfile, pandas-gbq, SQLAlchemy, Ibis, dbt, Vizier) against the local cloud, in environments of their own (8 min)
	@$(AIRFLOW_PY) -m pytest -m long packages/localcloud/tests/clients

.PHONY: conformance
conformance: $(VENV)/localcloud/.ready $(VENV)/conformance/.ready $(VENV)/conformance-dbt/.ready $(VENV)/conformance-ibis/.ready ## Run public clients' own test suites, unmodified, against the local cloud, and print the share of each that passes; fails where it is less than recorded (SUITES='gcsfs google-cloud-storage google-cloud-bigquery pandas-gbq sqlalchemy-bigquery sqlalchemy ibis dbt', all by default; RECORD=1 keeps the shares; packages/localcloud/docs/conformance.md)
	@PYTHONPATH=$(DEV):packages/localcloud/conformance/src exec $(LOCALCLOUD_PY) -m localcloud_conformance --environments $(VENV) --home build/conformance $(if $(filter 1,$(RECORD)),--record) $(SUITES)

.PHONY: test-browser
test-browser: setup $(VENV)/$(AIRFLOW_ENV)/.ready ## Click through the Models page in Chromium, with a real Airflow and axe-core: needs Chromium, Node 20 and npm (3 min; PICTURES=folder keeps what it saw; AIRFLOW_ENV=floor: in Airflow 3.1.7)
	@PICTURES='$(PICTURES)' $(VENV)/$(AIRFLOW_ENV)/bin/python -m pytest $(AIRFLOW_WARNINGS) -m long -s tests/e2e/test_models_page.py

# Of a checkout as it was committed: each file of tests that passes is noted, and left out by the next run.
COMMIT = $(if $(shell git status --porcelain 2>&1),,$(shell git rev-parse HEAD))
GO_ON = $(if $(COMMIT),--go-on build/long/$(COMMIT)/$@.jsonl)
LONG_LANES := test-long-nights test-long-rest test-long-trainer test-long-containers
.PHONY: test-long test-long-nights test-long-rest test-long-trainer test-long-containers
test-long: setup tuning-env $(TFIO_ENV) $(TFJS_ENV) $(TFDV_ENV) $(FRAMEWORK_ENVS) $(VENV)/bench-models/.ready $(VENV)/containers/.ready $(VENV)/lineage/.ready $(VENV)/mlflow/.ready $(CLIENT_ENVS) ## Run the tests that take minutes, with the environments that they need, in four lanes, two at a time; each lane's output comes when it ends, and one that fails stops no other. Stopped, it goes on with the files of tests that had not passed at this commit (TF.js needs Node 20 and npm; without these and Chromium the Models page is skipped, without podman the containers)
	@$(MAKE) --keep-going --jobs 2 --output-sync=target $(LONG_LANES)
test-long-nights: setup tuning-env ## Run the lane of whole nights and months under a real scheduler
	@$(AIRFLOW_PY) -m pytest -m long -s --durations 15 $(GO_ON) tests/e2e
test-long-rest: setup tuning-env $(TFIO_ENV) $(TFDV_ENV) $(FRAMEWORK_ENVS) $(VENV)/bench-models/.ready $(VENV)/lineage/.ready $(VENV)/mlflow/.ready $(CLIENT_ENVS) ## Run the lane of everything else but the trainer and the images
	@$(AIRFLOW_PY) -m pytest -m long -s --durations 60 $(GO_ON) --ignore tests/trainer --ignore tests/e2e --ignore tests/dev/containers
test-long-trainer: setup $(TFIO_ENV) $(TFJS_ENV) $(FRAMEWORK_ENVS) ## Run the lane of the trainer
	@$(TRAINER_PY) -m pytest -m long --durations 30 $(GO_ON) tests/trainer
test-long-containers: containers ## Run the lane of the images: containers

.PHONY: check-trainer
check-trainer: setup $(FRAMEWORK_ENVS) ## Hold an image to the contract of trainers, docs/trainer-contract.md: a process where dev/demo/localcloud.json has it, else a container of podman (IMAGE=…; without it all that are shipped)
	@TRAINER_IMAGE='$(IMAGE)' $(TRAINER_PY) -m pytest -q tests/trainer/conformance

.PHONY: coverage
coverage: setup $(TFIO_ENV) $(FRAMEWORK_ENVS) ## Run the suite without its nights and print the lines of plugins, dags and trainer that no test ran; fails where a file is under 80 % without a reason in CONTRIBUTING.md
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(AIRFLOW_PY) -m coverage run -m pytest -q -m "not long and not e2e" $(FLOOR_TESTS)
	@$(TRAINER_PY) -m coverage run -m pytest -q -m "not long" tests/trainer
	@$(AIRFLOW_PY) -m coverage combine --quiet && $(AIRFLOW_PY) -m coverage report
	@$(AIRFLOW_PY) -m coverage json --quiet -o build/coverage/report.json
	@$(AIRFLOW_PY) .ci/low_coverage.py build/coverage/report.json

.PHONY: hooks
hooks: $(VENV)/airflow/.ready ## Look at each commit as CI does first: ruff, mypy, models (git hooks by pre-commit)
	@$(VENV)/airflow/bin/pre-commit install

.PHONY: containers
containers: setup tuning-env $(VENV)/containers/.ready ## Build the images with podman and run them: three trainers against their contract, the trainer's as a night's jobs, docker-compose.yaml whole (25 min; dev/containers/README.md)
	@$(AIRFLOW_PY) -m pytest -m long -s $(GO_ON) tests/dev/containers

.PHONY: lint
lint: $(VENV)/airflow/.ready ## Run ruff over everything
	@$(AIRFLOW_PY) -m ruff check . && $(AIRFLOW_PY) -m ruff format --check .

.PHONY: typecheck
typecheck: $(VENV)/airflow/.ready ## Run mypy, strict, over everything
	@$(AIRFLOW_PY) -m mypy plugins dags dev packages trainer tests conftest.py

.PHONY: check-models
check-models: $(VENV)/airflow/.ready ## Validate every include/models/*.yaml, write build/model.schema.json (with RETRAINING_PROJECT and RETRAINING_REGION BigQuery is asked too, by dry runs: unknown tables and columns, types that do not fit; and the files of data.files are looked at)
	@mkdir -p build
	@PYTHONPATH=plugins $(AIRFLOW_PY) -m retraining check-models --json-schema build/model.schema.json --day $$(date -u +%F) $(if $(and $(RETRAINING_PROJECT),$(RETRAINING_REGION)),--cloud) $(if $(RETRAINING_REGION),--region $(RETRAINING_REGION))
	@$(if $(and $(RETRAINING_PROJECT),$(RETRAINING_REGION)),PYTHONPATH=plugins $(AIRFLOW_PY) -m retraining check-queries --project $(RETRAINING_PROJECT) --region $(RETRAINING_REGION),:)

.PHONY: contracts
contracts: $(VENV)/airflow/.ready $(VENV)/trainer/.ready ## Render what follows from the code: the documents' schemas, the trainer's dataclasses, its capabilities
	@PYTHONPATH=plugins:$(DEV) $(AIRFLOW_PY) -m contracts
	@TF_CPP_MIN_LOG_LEVEL=3 $(TRAINER_PY) -m trainer.tools.capabilities plugins/retraining/package_data/contracts/capabilities.json

.PHONY: audit
audit: $(VENV)/audit/.ready ## Ask the advisory database about every locked package (needs a connection to it; docs/security.md)
	@$(VENV)/audit/bin/python .ci/audit.py

.PHONY: bench-parse
bench-parse: $(VENV)/airflow/.ready ## Measure the seconds to parse the DAG files with 100 generated model specs
	@$(AIRFLOW_PY) -m pytest -q -s tests/dags -k parse_time

.PHONY: bench-fleet
bench-fleet: setup ## Measure a night of many models in one small Airflow on the local cloud, three of them broken: wall and slot seconds, jobs, calls, memory: build/bench/fleet.json (11 min with MODELS=3; MODELS=20, SLOTS=4, JOBS=separate, chained or pooled, START_S=0 for a machine's start, QUOTA=0 for most jobs at once)
	@PYTHONPATH=$(DEV):plugins exec $(LOCALCLOUD_PY) -m bench.fleet --models $(MODELS) --slots $(SLOTS) --jobs $(JOBS) --start $(START_S) --quota $(QUOTA)

.PHONY: bench-input
bench-input: $(VENV)/trainer/.ready $(VENV)/localcloud/.ready ## Measure how fast a training reads its shards, against TensorFlow's tutorial and helper: build/bench/input.json (10 min; ROUNDS=5)
	@PYTHONPATH=$(DEV):. $(TRAINER_PY) -m bench.input --rounds $(ROUNDS)

.PHONY: bench-readers
bench-readers: $(VENV)/trainer/.ready $(VENV)/localcloud/.ready $(VENV)/tfio/.ready ## Measure how fast a training reads files, the run table by the Storage Read API, and by tensorflow-io: build/bench/readers.json (4 min; ROUNDS=5)
	@PYTHONPATH=$(DEV):. exec $(LOCALCLOUD_PY) -m bench.readers --rounds $(ROUNDS)

.PHONY: bench-images
bench-images: $(VENV)/trainer/.ready $(VENV)/localcloud/.ready ## Measure how fast the export fetches images that are objects, many at a time against one by one: build/bench/images.json (4 min; ROUNDS=5)
	@PYTHONPATH=$(DEV):. exec $(LOCALCLOUD_PY) -m bench.images --rounds $(ROUNDS)

.PHONY: bench-scoring
bench-scoring: $(VENV)/trainer/.ready $(VENV)/localcloud/.ready ## Measure rows a second and core of a batch prediction, beside the endpoint and the bare model: build/bench/scoring.json (6 min; ROUNDS=5)
	@PYTHONPATH=$(DEV):. exec $(LOCALCLOUD_PY) -m bench.scoring --rounds $(ROUNDS)

.PHONY: bench-export
bench-export: $(VENV)/trainer/.ready $(VENV)/localcloud/.ready $(VENV)/bench-tfx/.ready ## Measure the export against TensorFlow's, TFX's and Beam's ways: build/bench/export.json (12 min; ROUNDS=5; SCALE=1, below 1: fewer rows, and without the export job)
	@PYTHONPATH=$(DEV):. exec $(LOCALCLOUD_PY) -m bench.export --rounds $(ROUNDS) --scale $(SCALE)

.PHONY: bench-train
bench-train: $(VENV)/$(TRAINER_ENV)/.ready $(VENV)/localcloud/.ready ## Measure two workers beside one, a step fed by the reader beside one from memory, the way to the first step: build/bench/train.json (8 min; ROUNDS=5; TRAINER_ENV=tfio: on TensorFlow 2.16)
	@PYTHONPATH=$(DEV):. $(VENV)/$(TRAINER_ENV)/bin/python -m bench.train --rounds $(ROUNDS)

.PHONY: bench-models
bench-models: $(VENV)/trainer/.ready $(VENV)/bench-models/.ready ## Measure the default models beside scikit-learn's and LightGBM's on public tables: build/bench/models.json (hours; SEEDS=5; SETS=digits penguins)
	@PYTHONPATH=$(DEV):plugins:. exec $(TRAINER_PY) -m bench.models $(abspath $(VENV))/bench-models/bin/python --seeds $(SEEDS) $(if $(SETS),--sets $(SETS))

.PHONY: bench-warm-start
bench-warm-start: $(VENV)/trainer/.ready $(VENV)/localcloud/.ready ## Count the steps that ten nights of flights save from the weights of the night before: build/bench/warm_start.json (15 min)
	@PYTHONPATH=$(DEV):plugins:. exec $(TRAINER_PY) -m bench.warm_start

.PHONY: bench-tree-threads
bench-tree-threads: $(VENV)/trainer/.ready ## Measure boosted trees grown by one thread and by as many as there are cores: build/bench/tree_threads.json (4 min; ROUNDS=5)
	@PYTHONPATH=$(DEV):plugins:. exec $(TRAINER_PY) -m bench.tree_threads --rounds $(ROUNDS)

.PHONY: bench-local-clouds
bench-local-clouds: $(VENV)/localcloud/.ready $(VENV)/bench-emulators/.ready ## Measure start, memory and first answers of the local cloud, beside bqemulator, gcp-storage-emulator and moto: build/bench/local_clouds.json (3 min; ROUNDS=5)
	@PYTHONPATH=$(DEV) exec $(LOCALCLOUD_PY) -m bench.local_clouds --rounds $(ROUNDS) $(abspath $(VENV))/bench-emulators/bin

.PHONY: bench-environments
bench-environments: $(VENV)/trainer/.ready $(VENV)/localcloud/.ready $(VENV)/tfio/.ready ## Measure the way to the first step, and a step, on TensorFlow 2.21 beside 2.16: build/bench/environments.json (6 min; ROUNDS=5)
	@PYTHONPATH=$(DEV):. $(TRAINER_PY) -m bench.environments --rounds $(ROUNDS) $(abspath $(VENV))/trainer/bin/python $(abspath $(VENV))/tfio/bin/python

.PHONY: bench-tuning bench-tuning-grid
bench-tuning: $(VENV)/airflow/.ready tuning-env ## Count the trials of a search that remembers earlier ones, beside one that starts from nothing: build/bench/tuning.json (over two hours; goes on where it was stopped; SEEDS=5)
	@PYTHONPATH=$(DEV):plugins exec $(AIRFLOW_PY) -m bench.tuning --seeds $(SEEDS)
bench-tuning-grid: $(VENV)/trainer/.ready ## Measure again the scores that bench-tuning searches: tuning_grid.json (6 min)
	@PYTHONPATH=$(DEV):. exec $(TRAINER_PY) -m bench.tuning_grid

.PHONY: bench-gates
bench-gates: $(VENV)/airflow/.ready ## Count how often the judge errs, in simulated comparisons: equal models, gains, a year of nights, scarce evidence, days with effects, and what effects the days of the flights have; gates.json and the pictures of docs/evaluation.md (25 min; QUICK=1 prints small tables, 3 min)
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 $(AIRFLOW_PY) -m bench.gates $(if $(QUICK),--quick)
	@$(if $(QUICK),,PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.gates_flights)

.PHONY: bench-validation
bench-validation: $(VENV)/airflow/.ready ## Stop boosted trees by rows, by whole days and by the newest days of the flights: validation_days.json, docs/data.md (2 min)
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.validation_days

.PHONY: bench-ramp
bench-ramp: $(VENV)/airflow/.ready ## Play ramps of equal and of worse versions at 1 to 1,000 requests a second: false rollbacks, power, minutes; ramp.json, docs/deployment.md (2 min; RAMPS=100)
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.ramp --ramps $(RAMPS)

.PHONY: bench-policy
bench-policy: $(VENV)/airflow/.ready ## Play the retraining policy through a year in 30 worlds: regret, orders, days stuck, rows that replay; policy.json, docs/monitoring.md (1 to 3 min)
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.policy

.PHONY: bench-monitor
bench-monitor: $(VENV)/airflow/.ready $(VENV)/localcloud/.ready $(VENV)/bench-drift/.ready $(VENV)/tfdv/.ready ## Count the monitor's false alarms, its delay behind injected shifts, and what its default limits see, beside TensorFlow Data Validation, NannyML and Evidently: monitor.json, monitor_limits.json, monitor_verdicts.json and the picture of docs/monitoring.md (Python 3.11; 12 min)
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 $(AIRFLOW_PY) -m bench.monitor
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 $(AIRFLOW_PY) -m bench.monitor_limits
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.monitor_verdicts $(VENV)/bench-drift/bin/python $(VENV)/tfdv/bin/python

.PHONY: bench-attributions
bench-attributions: $(VENV)/airflow/.ready ## Count how often the monitor's signal of attributions is over its limit, on a year of flights as they are and with features lost, and where nothing changes: attributions.json, docs/monitoring.md (15 min)
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.monitor_attributions

.PHONY: bench-estimate
bench-estimate: $(VENV)/airflow/.ready $(VENV)/sklearn/.ready ## Hold the monitor's estimate without labels against what labels say later, over a year of flights, and count how often its interval has the truth: estimate.json, coverage.json, docs/monitoring.md (7 min)
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.monitor_estimate $(VENV)/sklearn/bin/python
	@PYTHONPATH=$(DEV):plugins:. OMP_NUM_THREADS=1 exec $(AIRFLOW_PY) -m bench.estimate_coverage

.PHONY: monitor-references
monitor-references: $(VENV)/airflow/.ready $(VENV)/bench-drift/.ready $(VENV)/tfdv/.ready ## Ask NannyML, Evidently and TensorFlow Data Validation again what the monitor's numbers are held to (docs/monitoring.md; Python 3.11; 2 min)
	@PYTHONPATH=$(DEV) $(AIRFLOW_PY) -m bench.monitor_references $(VENV)/bench-drift/bin/python $(VENV)/tfdv/bin/python

.PHONY: monitor-vectors
monitor-vectors: $(VENV)/airflow/.ready $(VENV)/tfdv/.ready ## Ask TensorFlow Data Validation again for its verdicts on 180 random columns, which the monitor's are held to: monitor_vectors.json, docs/monitoring.md (Python 3.11; 2 min)
	@PYTHONPATH=$(DEV):plugins:. $(AIRFLOW_PY) -m bench.monitor_vectors $(VENV)/tfdv/bin/python

.PHONY: bench-rates scaling-tables simulate-export
bench-rates: $(VENV)/localcloud/.ready $(VENV)/trainer/.ready ## Measure rows and photos a second of one core, for packages/bench/docs/scaling.md: build/bench/rates.json (5 min)
	@PYTHONPATH=$(DEV) $(LOCALCLOUD_PY) -m bench.scaling_rates
scaling-tables: $(VENV)/airflow/.ready ## Make the tables of packages/bench/docs/scaling.md again from scaling_rates.json and plugins/retraining/package_data/prices
	@PYTHONPATH=$(DEV) $(AIRFLOW_PY) -m bench.scaling write packages/bench/docs/scaling.md
simulate-export: $(VENV)/airflow/.ready ## Play the export's assignment of units out: skewed days, lost and preempted replicas
	@PYTHONPATH=$(DEV) $(AIRFLOW_PY) -m bench.scaling simulate

# --- ship -----------------------------------------------------------------------------------------------------------

.PHONY: bundle
bundle: ## Build build/bundle/{dags,plugins}: what Composer's bucket gets
	@rm -rf build/bundle && mkdir -p build/bundle/dags/include
	@git ls-files -z dags plugins | tar --create --null --files-from - | tar --extract --directory build/bundle
	@git ls-files -z include | tar --create --null --files-from - | tar --extract --directory build/bundle/dags
	@echo "bundle: build/bundle/dags and build/bundle/plugins"

.PHONY: packages
packages: $(VENV)/airflow/.ready ## Build dist/*.whl, the software as packages for repositories that have only models: retraining, retraining-trainer, localcloud (docs/installed.md)
	@PYTHONPATH=$(DEV) $(AIRFLOW_PY) -m wheels --uv '$(UV)' --out dist

.PHONY: deploy
deploy: bundle check-models ## Bring the bundle to a Composer environment's bucket: plugins, then DAGs, then what is gone is removed (ENV=, BUCKET=; DRY=1 says what would change, FORCE=1 replaces what somebody changed there)
	@test -n '$(ENV)' -a -n '$(BUCKET)' || { echo "make: expected ENV=…, the environment's name, and BUCKET=…, its bucket without gs://" >&2; exit 2; }
	@PYTHONPATH=$(DEV) $(AIRFLOW_PY) -m composer --environment '$(ENV)' --bucket '$(BUCKET)' $(if $(filter 1,$(DRY)),--dry-run) $(if $(filter 1,$(FORCE)),--force)

.PHONY: sdist
sdist: $(VENV)/trainer/.ready ## Build dist/trainer-*.tar.gz for Vertex AI's pre-built containers of a TensorFlow (FRAMEWORK=2.15)
	@$(TRAINER_PY) -m trainer.tools.package --framework $(FRAMEWORK) --out dist

.PHONY: compose-env
compose-env: ## Write .env with fresh secrets for docker-compose.yaml, the system in containers, unless there is one
	@test ! -e .env || { echo "make: .env is there already; remove it to make new secrets (and the volume of Postgres with it)" >&2; exit 2; }
	@umask 077 && $(PYTHON) dev/compose/make_env.py > .env && echo "compose-env: .env written; now: docker compose up"

.PHONY: clean
clean: ## Remove the environments and everything built (the system's Python was never touched)
	@! mountpoint --quiet build/containers/store/overlay || umount --recursive build/containers/store/overlay
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
