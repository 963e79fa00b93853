# The local cloud with the trainer's environment beside it, in which its jobs run. Build context: the repository.
FROM docker.io/library/python:3.11.15-slim-bookworm

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/app/dev:/app/packages/localcloud/src PATH=/app/.venv/localcloud/bin:$PATH

RUN useradd --create-home --uid 50000 --gid 0 localcloud && mkdir /state && chown 50000:0 /state
WORKDIR /app

# --no-deps: the locks are complete.
COPY dev/requirements.txt /tmp/localcloud.txt
COPY trainer/requirements.txt /tmp/trainer.txt
RUN python -m venv .venv/localcloud && python -m venv .venv/trainer \
    && .venv/localcloud/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /tmp/localcloud.txt \
    && .venv/trainer/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /tmp/trainer.txt \
    && rm /tmp/localcloud.txt /tmp/trainer.txt

COPY packages/localcloud/src /app/packages/localcloud/src
COPY dev/demo /app/dev/demo
COPY trainer /app/trainer

USER 50000
VOLUME /state
CMD ["python", "-m", "localcloud", "up", "--state", "/state", "--config", "dev/demo/localcloud.json"]
