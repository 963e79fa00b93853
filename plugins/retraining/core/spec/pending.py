"""Keys of a model's YAML that nothing acts on so far: refused in a file, and read in plans of earlier releases."""

from __future__ import annotations

from retraining.core.errors import SpecError
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.yaml_file import SpecText


def refuse_pending(spec: ModelSpec, text: SpecText) -> None:
    """Accept a spec whose every key acts.

    Raises:
        SpecError: One does not yet; what is written there would be believed.
    """
    steps = list(spec.deployment.canary_percent)
    if steps != [100]:
        raise SpecError(
            _where(text, "deployment", "canary_percent"),
            f"deployment.canary_percent is {steps}",
            "deployment.canary, which has the steps and what must hold at each",
            f"Write deployment.canary: {{percent: {steps}}}",
        )


def _where(text: SpecText, *location: str) -> str:
    return f"{text.where}, line {text.line(location)}"
