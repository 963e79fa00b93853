"""A worker or a parameter server of an asynchronous training: it does what the chief asks until the job ends.

https://www.tensorflow.org/tutorials/distribute/parameter_server_training
"""

from __future__ import annotations

import logging

import tensorflow as tf

LOGGER = logging.getLogger(__name__)


def serve_variables() -> None:
    """Serve; never returns. The process ends with the job, or by a signal: it has nothing to save."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol=resolver.rpc_layer or "grpc",
        start=True,
    )
    LOGGER.info("train: %s %s serves the chief", resolver.task_type, resolver.task_id)
    server.join()
