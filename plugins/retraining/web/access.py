"""Who may see what: a model is shown to those who may read its DAG `retrain__<model>`, by Airflow's auth manager."""

from __future__ import annotations

import asyncio
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Depends

from retraining.core.naming.dags import is_model

PREFIX = "retrain__"


async def readable_models(user: GetUserDep) -> frozenset[str]:
    """Return the models that the caller may see; without a login Airflow's own dependency answers 401."""
    return await asyncio.to_thread(_readable, user)


def _readable(user: BaseUser) -> frozenset[str]:
    dag_ids = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    models = (dag_id.removeprefix(PREFIX) for dag_id in dag_ids if dag_id.startswith(PREFIX))
    return frozenset(model for model in models if is_model(model))


Readable = Annotated[frozenset[str], Depends(readable_models)]
