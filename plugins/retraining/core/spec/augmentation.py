"""The section `training.augmentation` of a model's YAML: how images are changed, in training alone."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from retraining.core.spec.section import Section

STRENGTH = "augmentation_strength"
"""The hyperparameter that `strength` is multiplied by, so that a search can find it."""

Half = Annotated[float, Field(ge=0, le=0.5)]


class Augmentation(Section):
    """Random changes of the training's images, drawn anew for each image and epoch; numbers are the most there is."""

    flip: Literal["none", "horizontal", "vertical", "both"] = "none"
    """Mirrored: half of the images, in each direction; fewer where the strength is below 1."""
    rotate: Half = 0.0
    """To either side, as a share of a whole turn: 0.05 is 18 degrees."""
    zoom: Half = 0.0
    """In or out, as a share of the image's sides."""
    crop: Half = 0.0
    """Cut off, as a share of the sides, at a random place; what is left is resized to the whole."""
    brightness: Half = 0.0
    """Added or taken away, as a share of the range from black to white."""
    contrast: Half = 0.0
    """More or less, as a share of each colour's distance from its mean."""
    noise: Half = 0.0
    """Standard deviation of what is added to each value, as a share of the range from black to white."""
    strength: Annotated[float, Field(ge=0, le=10)] = 1.0
    """What all of them are multiplied by; each stays within its bound. The hyperparameter `augmentation_strength`
    multiplies it once more, and can be searched."""
    contact_sheet: bool = True
    """Whether the run's page shows eight training images, each as it is and changed four times."""

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        amounts = (self.rotate, self.zoom, self.crop, self.brightness, self.contrast, self.noise)
        if self.flip == "none" and not any(amounts):
            raise ValueError(
                "it changes nothing: give flip, rotate, zoom, crop, brightness, contrast or noise, or remove it"
            )
        return self
