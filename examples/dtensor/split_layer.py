"""A layer split over several devices with DTensor: `python examples/dtensor/split_layer.py --devices 4`.

For a model whose layer is larger than one device's memory. Here the devices are virtual ones of one CPU, so that it
runs anywhere: the hidden layer's units are split, each device holds a share of both kernels, and TensorFlow adds the
partial products up. The same steps are taken by the unsplit network, and the two are compared.
https://www.tensorflow.org/guide/dtensor_overview
"""

from __future__ import annotations

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

FEATURES, UNITS, ROWS, STEPS, RATE = 8, 64, 256, 20, 0.1

Array = np.ndarray
Weights = list[Array]
"""Kernel [features, units], bias [units], kernel [units, 1], bias [1]."""


def make_mesh(devices: int) -> dtensor.Mesh:
    """Return a mesh of virtual CPUs with one dimension, `model`. To be called before TensorFlow uses a device."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    return dtensor.create_mesh([("model", devices)], devices=[f"CPU:{number}" for number in range(devices)])


def layouts(mesh: dtensor.Mesh) -> list[dtensor.Layout]:
    """Return each weight's place: whatever has the dimension of the units is split along it, the last bias is whole."""
    whole = dtensor.UNSHARDED
    return [dtensor.Layout(sharded, mesh) for sharded in ([whole, "model"], ["model"], ["model", whole], [whole])]


def make_problem(seed: int = 0) -> tuple[Weights, Array, Array]:
    """Return first weights, examples [rows, features] and labels [rows, 1]."""
    random = np.random.default_rng(seed)
    examples = random.normal(size=(ROWS, FEATURES)).astype(np.float32)
    labels = (np.sin(examples[:, :1]) + examples[:, 1:2] * examples[:, 2:3]).astype(np.float32)
    first = random.normal(scale=0.3, size=(FEATURES, UNITS)).astype(np.float32)
    second = random.normal(scale=0.3, size=(UNITS, 1)).astype(np.float32)
    return [first, np.zeros(UNITS, np.float32), second, np.zeros(1, np.float32)], examples, labels


def loss_of(weights: list[tf.Tensor], examples: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the mean squared error; the same text for whole and for split weights."""
    kernel, bias, out_kernel, out_bias = weights
    hidden = tf.nn.relu(tf.matmul(examples, kernel) + bias)  # [rows, units], the units split
    answers = tf.matmul(hidden, out_kernel) + out_bias  # [rows, 1], summed over the devices
    return tf.reduce_mean(tf.square(answers - labels))


def train(variables: list[tf.Variable], examples: tf.Tensor, labels: tf.Tensor) -> list[tf.Tensor]:
    """Take the steps; gives the loss before each."""

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_of(variables, examples, labels)
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(RATE * gradient)
        return loss

    return [step() for _ in range(STEPS)]


def train_whole() -> tuple[list[float], Weights]:
    """Train on one device; gives losses and weights."""
    weights, examples, labels = make_problem()
    variables = [tf.Variable(value) for value in weights]
    losses = train(variables, tf.constant(examples), tf.constant(labels))
    return [float(loss) for loss in losses], [variable.numpy() for variable in variables]


def train_split(mesh: dtensor.Mesh) -> tuple[list[float], Weights, list[tuple[int, ...]]]:
    """Train split over the mesh; gives losses, weights, and the shape of the part of each that a device holds."""
    weights, examples, labels = make_problem()
    variables = [
        dtensor.DVariable(dtensor.relayout(_everywhere(value, mesh), layout))
        for value, layout in zip(weights, layouts(mesh), strict=True)
    ]
    losses = train(variables, _everywhere(examples, mesh), _everywhere(labels, mesh))
    parts = [dtensor.unpack(variable.read_value()) for variable in variables]
    joined = [_join([part.numpy() for part in each], layout) for each, layout in zip(parts, layouts(mesh), strict=True)]
    return [float(dtensor.unpack(loss)[0]) for loss in losses], joined, [tuple(each[0].shape) for each in parts]


def _everywhere(value: Array, mesh: dtensor.Mesh) -> tf.Tensor:
    return dtensor.copy_to_mesh(tf.constant(value), dtensor.Layout.replicated(mesh, rank=value.ndim))


def _join(parts: list[Array], layout: dtensor.Layout) -> Array:
    """Put a weight together again from what the devices hold."""
    if "model" not in layout.sharding_specs:
        return parts[0]
    return np.concatenate(parts, axis=layout.sharding_specs.index("model"))


def main() -> None:
    """Train both ways and print how they compare."""
    parser = argparse.ArgumentParser(description="A layer split over virtual devices, beside the same one whole.")
    parser.add_argument("--devices", type=int, default=4, help=f"a divisor of {UNITS} (default: 4)")
    devices = parser.parse_args().devices
    if devices < 1 or UNITS % devices:
        parser.error(f"--devices {devices}: expected a divisor of {UNITS}, the units that are split")
    mesh = make_mesh(devices)
    losses, weights = train_whole()
    split_losses, split_weights, held = train_split(mesh)
    farthest = max(float(np.abs(one - other).max()) for one, other in zip(weights, split_weights, strict=True))
    print(f"whole: loss {losses[0]:.6f} to {losses[-1]:.6f}, kernel {list(weights[0].shape)}")
    print(f"split: loss {split_losses[0]:.6f} to {split_losses[-1]:.6f}, kernel {list(held[0])} on each of {devices}")
    print(f"farthest weight apart: {farthest:.1e}")


if __name__ == "__main__":
    main()
