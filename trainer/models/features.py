"""What an architecture knows of its inputs. One of your own imports it from here, as these do."""

from trainer.features.bags import Bag
from trainer.features.images import Image
from trainer.features.preprocessing import Category, InputShape, Text
from trainer.features.sequences import Sequence

__all__ = ["Bag", "Category", "Image", "InputShape", "Sequence", "Text"]
