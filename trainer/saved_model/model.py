"""The stored model: raw features in, score out.

Signature `serving_default`: one input per feature of shape [batch] (float32, or string; a time is int64; an image is
the string of a PNG or JPEG), of a sequence [batch, any length], filled up at the end with NaN or ""; output `score`
[batch] float32, a probability, or with several classes `scores` [batch, classes]; of a regression `prediction` [batch]
or `quantiles` [batch, quantiles], in the order of the label's, in its unit. Where classes have names `class` [batch]
string is one more output, see `Answers`, and the names stand in the model. Auxiliary labels are further outputs, by
their names. Preprocessing is part of the graph, so training and serving cannot differ. With a key, its column is one
more input, [batch] string or int64, and an output of that name, which gives it back as it came: that is how a stored
model tells which of its inputs is no feature. The same file reads stored models back, its own or an earlier champion's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.contract.documents import Feature, Label, Signature
from trainer.errors import DataError
from trainer.features.preprocessing import Preprocessing
from trainer.models.stored_module import StoredModule
from trainer.objective.answers import CLASS, OUTPUTS, QUANTILES, SCORES, Answers
from trainer.objective.labels import labels_of
from trainer.objective.metrics import Floats
from trainer.objective.outputs import Objective

SIGNATURE = "serving_default"
LITE = "lite"
"""A second signature, of models from which a TF Lite or TF.js model is made: categories as ids, images as pixels,
sequences cut and filled up."""

VOCABULARY_PATH = "assets.extra/vocabulary.json"
"""Where such a model has the ids of its categories; a file of a SavedModel's own may lie there."""


def save_model(
    folder_path: Path,
    features: Sequence[Feature],
    preprocessing: Preprocessing,
    model: tf_keras.Model,
    objective: Objective,
    *,
    lite: bool = False,
    key: tf.TensorSpec | None = None,
) -> None:
    """Write a SavedModel with the serving signature.

    What is stored is the graph, the lookup tables and the variables. The Keras object itself stays out: storing it
    traces every layer again, which takes longer than the training of a small model.

    Args:
        folder_path: Where; must not exist.
        model: Gives logits.
        objective: Turns them into answers.
        lite: Whether a TF Lite model will be made of it.
        key: That comes with a request and goes back with its answer; None: none does.
    """
    answers = objective.kind.answers
    inputs = {SIGNATURE: {feature.name: input_spec(feature) for feature in features}}
    if key is not None:
        inputs[SIGNATURE][key.name] = key
    if lite:
        one = any(feature.kind == "sequence" for feature in features)  # TF Lite converts loops of a known size alone
        inputs[LITE] = {feature.name: _lite_input(feature, 1 if one else None) for feature in features}
    module = tf.Module(name="serving")
    module.preprocessing, module.weights = preprocessing, list(model.variables)
    module.modules = [layer.module for layer in model.submodules if isinstance(layer, StoredModule)]
    if answers.quantiles:
        module.quantiles = tf.Variable(answers.quantiles, dtype=tf.float64, trainable=False)
    if answers.names:
        module.class_names = tf.Variable(answers.names, dtype=tf.string, trainable=False)
    # A function each: one would answer the second signature with the first's trace where that is more general.
    signatures = {
        name: tf.function(
            _scorer(preprocessing, model, objective, key, named=name == SIGNATURE), autograph=False
        ).get_concrete_function(**specs)
        for name, specs in inputs.items()
    }
    tf.saved_model.save(module, str(folder_path), signatures=signatures)
    if lite:
        vocabulary_path = folder_path / VOCABULARY_PATH
        vocabulary_path.parent.mkdir()
        vocabulary_path.write_bytes(preprocessing.vocabulary.serialise())


def _scorer(
    preprocessing: Preprocessing, model: tf_keras.Model, objective: Objective, key: tf.TensorSpec | None, *, named: bool
) -> Callable[..., dict[str, tf.Tensor]]:
    """Return what answers raw features; `named`: with the names of classes too, which TF Lite cannot give back."""
    answers = objective.kind.answers

    def score(**raw: tf.Tensor) -> dict[str, tf.Tensor]:
        logits = model(preprocessing(raw), training=False)  # [B, outputs]
        scores = objective.scores(logits)
        given_back = {key.name: tf.identity(raw[key.name])} if key is not None and key.name in raw else {}
        classes = {CLASS: likeliest_class(scores, answers.names)} if named and answers.names else {}
        return {answers.output: scores, **classes, **objective.auxiliary_scores(logits), **given_back}

    return score


def likeliest_class(scores: tf.Tensor, names: Sequence[str]) -> tf.Tensor:
    """Return the name of each row's likeliest class. [B] of class 1, or [B, classes] → string [B]."""
    two = scores.shape.rank == 1
    number = tf.cast(scores >= 0.5, tf.int64) if two else tf.argmax(scores, axis=-1)  # the first of equal ones
    return tf.gather(tf.constant(list(names), tf.string), number)


def input_spec(feature: Feature) -> tf.TensorSpec:
    """Return a feature's input of the serving signature."""
    shape = [None, None] if feature.kind == "sequence" else [None]
    kind = feature.of if feature.kind == "sequence" else feature.kind
    dtypes = {"numeric": tf.float32, "time": tf.int64}
    return tf.TensorSpec(shape, dtypes.get(kind, tf.string), name=feature.name)


def key_spec(name: str, type_: str | None) -> tf.TensorSpec:
    """Return a key column as an input and output of the serving signature: int64 of whole numbers, else text."""
    return tf.TensorSpec([None], tf.int64 if type_ == "INTEGER" else tf.string, name=name)


def key_input(inputs: Iterable[str], outputs: Iterable[str]) -> str | None:
    """Return which input of a signature is the key: the one that comes back under its name."""
    return next(iter(set(inputs) & set(outputs)), None)


def _lite_input(feature: Feature, batch: int | None) -> tf.TensorSpec:
    """Return what a phone has: it decodes images and looks texts up itself, and TF Lite can do neither."""
    if feature.kind == "image":
        return tf.TensorSpec([batch, feature.height, feature.width, feature.channels], tf.uint8, name=feature.name)
    kind = feature.of if feature.kind == "sequence" else feature.kind
    dtype = tf.int32 if kind == "categorical" else input_spec(feature).dtype
    shape = [batch, feature.length] if feature.kind == "sequence" else [batch]
    return tf.TensorSpec(shape, dtype, name=feature.name)


def save_lite_graph(folder_path: Path, out_path: Path, uri: str) -> None:
    """Store the signature `lite` alone with what it reads: of the whole model converters take the tables of texts too.

    Args:
        folder_path: Of the stored model.
        out_path: Of the one with this signature; empty, or not there.
        uri: Of the stored model, for messages.

    Raises:
        DataError: It has no such signature.
    """
    loaded, module = tf.saved_model.load(str(folder_path)), tf.Module()
    if LITE not in loaded.signatures:
        raise DataError(
            uri,
            "the model was not stored for conversion",
            f"a signature {LITE!r} beside {SIGNATURE!r}",
            "Set training.export_lite: [float16] and train again",
        )
    module.weights, module.modules = loaded.weights, loaded.modules
    tf.saved_model.save(module, str(out_path), signatures={LITE: loaded.signatures[LITE]})


class StoredModel:
    """A SavedModel, loaded.

    Args:
        folder_path: Its local folder.
        uri: Its address.
        digest: Of its files; None: not known.

    Raises:
        DataError: It cannot be loaded, or its signature is not the one above.
    """

    def __init__(self, folder_path: Path, uri: str, digest: str | None = None) -> None:
        self.uri, self.digest = uri, digest
        try:
            self._loaded = tf.saved_model.load(str(folder_path))  # keeps the variables alive
            self._score = self._loaded.signatures[SIGNATURE]
        except (OSError, KeyError, ValueError, AttributeError, tf.errors.OpError) as error:
            raise DataError(
                uri, f"no SavedModel with signature {SIGNATURE!r} ({error})", "a model written by this trainer"
            ) from error
        outputs = self._score.structured_outputs
        self._output = next((name for name in OUTPUTS if name in outputs), "")
        if not self._output:
            raise DataError(uri, f"outputs {sorted(outputs)}", f"an output {', '.join(map(repr, OUTPUTS))}")

    @property
    def answers(self) -> Answers:
        """The form of its answers."""
        if self._output == QUANTILES:
            return Answers(output=QUANTILES, quantiles=tuple(self._loaded.quantiles.numpy().tolist()))
        if self._output != SCORES:
            return Answers(output=self._output, names=self._names)
        shape = self._score.structured_outputs[self._output].shape
        classes = int(shape[1]) if shape.rank == 2 and shape[1] else 0
        return Answers(output=SCORES, classes=classes, names=self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        """The classes' names that it was stored with."""
        if CLASS not in self._score.structured_outputs:
            return ()
        return tuple(name.decode() for name in self._loaded.class_names.numpy().tolist())

    def answers_label(self, label: Label) -> bool:
        """Return whether it has an output for an auxiliary label, of the form that the label's kind has."""
        output, expected = self._score.structured_outputs.get(label.name), labels_of(label).answers
        size = expected.classes or len(expected.quantiles)
        return output is not None and output.shape.as_list()[1:] == ([size] if size else [])

    @property
    def inputs(self) -> dict[str, str]:
        """Features that it reads, by name, with their dtypes."""
        signature = self.signature
        return {name: dtype for name, dtype in signature.inputs.items() if name not in signature.outputs}

    @property
    def key(self) -> tf.TensorSpec | None:
        """The key that it takes and gives back."""
        _, inputs = self._score.structured_input_signature
        name = key_input(inputs, self._score.structured_outputs)
        return inputs[name] if name else None

    @property
    def lists(self) -> frozenset[str]:
        """Names of the inputs that are lists of values."""
        _, inputs = self._score.structured_input_signature
        return frozenset(name for name, spec in inputs.items() if spec.shape.rank == 2)

    @property
    def signature(self) -> Signature:
        """Every input and output by name, with its dtype and its sizes."""
        _, inputs = self._score.structured_input_signature
        outputs = self._score.structured_outputs
        return Signature(
            inputs={name: spec.dtype.name for name, spec in inputs.items()},
            outputs={name: spec.dtype.name for name, spec in outputs.items()},
            input_shapes=_sizes(inputs),
            output_shapes=_sizes(outputs),
        )

    def predict(self, raw: Mapping[str, Any]) -> Floats:
        """Score raw features: give the label's answers alone.

        [B] or [B, T] each → [B], [B, classes] or [B, quantiles].

        Raises:
            DataError: A feature that it reads is missing or has another type.
        """
        return self.answer(raw)[self._output]

    def answer(self, raw: Mapping[str, Any]) -> dict[str, Floats]:
        """Return every number that it answers to raw features, by name; those that it does not read are ignored.

        Raises:
            DataError: A feature that it reads is missing or has another type.
        """
        inputs: dict[str, Any] = {}
        for name, dtype in self.inputs.items():
            given = raw[name].dtype.name if name in raw else None
            if given != dtype:
                raise DataError(
                    self.uri,
                    f"reads {name!r} as {dtype}; the examples have {f'it as {given}' if given else 'no such column'}",
                    "the same features as the examples",
                )
            inputs[name] = raw[name]
        if (key := self.key) is not None:
            inputs[key.name] = tf.zeros([len(next(iter(inputs.values())))], key.dtype)
        answers = self._score(**inputs)
        return {
            name: np.asarray(values.numpy(), np.float64)
            for name, values in answers.items()
            if name not in inputs and name != CLASS
        }

    @property
    def output(self) -> str:
        """Name of the label's output."""
        return self._output


def _sizes(specs: Mapping[str, tf.TensorSpec | tf.Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the sizes beside the batch, of those that have any; -1: any."""
    sizes = {name: spec.shape.as_list()[1:] for name, spec in specs.items() if spec.shape.rank}
    return {name: tuple(-1 if size is None else size for size in found) for name, found in sizes.items() if found}


def digest_folder(folder_path: Path) -> str:
    """Return the SHA-256 over the sorted lines `<file name> <SHA-256>` of all files."""
    digest = hashlib.sha256()
    for path in sorted(folder_path.rglob("*"), key=lambda path: path.relative_to(folder_path).as_posix()):
        if path.is_file():
            name = path.relative_to(folder_path).as_posix()
            digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
