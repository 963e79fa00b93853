"""Whether a version may have an office: aliases go only to versions whose own run's decision promoted them.

The model's rollout says which version was champion, and may be a copy from elsewhere, or written by somebody else. The
decision lies in the folder of the run that the version's own label names.
"""

from __future__ import annotations

from retraining.core.documents import Decision
from retraining.core.naming import storage
from retraining.core.promotion import aliases
from retraining.core.promotion.versions import Version
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record

WAY_OUT = (
    "Look who wrote it, delete it once the endpoint and the alias champion are as they shall be, and clear the task"
)


def is_promoted(cloud: CloudPort, model: str, version: Version) -> bool:
    """Tell whether a version's own run promoted it; of one that no run made, whether it is deployed.

    Raises:
        ContractError: The decision does not obey the contract.
    """
    if not version.run_key:
        return version.deployed
    folder = storage.run_uri(cloud.settings.bucket, model, version.run_key)
    decision = Record(cloud.artifacts, folder).find_document(Decision)
    return decision is not None and (decision.verdict, decision.run_key) == ("promote", version.run_key)


def require_promoted(cloud: CloudPort, model: str, version: Version, where: str, way_out: str = WAY_OUT) -> None:
    """Refuse to make a version champion that its own run did not promote.

    Args:
        cloud: The hooks.
        model: Of the version.
        version: That is to be champion.
        where: What names it.
        way_out: For whoever reads it.

    Raises:
        ContractError: Its run's decision says otherwise, or there is none.
    """
    if not is_promoted(cloud, model, version):
        raise aliases.without_verdict(where, version, way_out)
