"""Pipelines are traced as they stand, without AutoGraph: what builds one is `traced_plainly`.

AutoGraph rewrites the source of every function that a pipeline calls, so that Python's `if` and `for` over tensors
work. None here has any, and rewriting costs a training a second before its first batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import tensorflow as tf

Builder = TypeVar("Builder", bound=Callable[..., object])


def traced_plainly(build: Builder) -> Builder:
    """Switch AutoGraph off for the functions that are given to a pipeline while it is built, and what they call."""
    return cast(Builder, tf.autograph.experimental.do_not_convert(build))
