#!/usr/bin/env bash
# Entry point of the Airflow containers: the local cloud's client variables, then the image's own entry point.
set -euo pipefail
exports=$(PYTHONPATH=/opt/airflow/dev:/opt/airflow/packages/localcloud/src python -m localcloud env --state "${LOCALCLOUD_STATE}" --gateway-host localcloud)
eval "${exports}"
exec /usr/bin/dumb-init -- /entrypoint "$@"
