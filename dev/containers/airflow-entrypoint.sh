#!/bin/bash
# What the official image's entry point does before `airflow`: the group, the umask, waiting for the database.
set -euo pipefail
[ "$(id -g)" = 0 ] || { echo "ERROR! You should run the image with GID=0" >&2; exit 1; }
umask 0002
for attempt in $(seq 20); do
  airflow db check >/tmp/check.log 2>&1 && break
  [ "$attempt" -lt 20 ] || { cat /tmp/check.log >&2; exit 1; }
  sleep 3
done
case "$1" in bash | python) exec "$@" ;; airflow) shift ;; esac
exec airflow "$@"
