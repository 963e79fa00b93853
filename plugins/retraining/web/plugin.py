"""The Models page in Airflow's menu.

It opens in a tab of its own: the frame in which Airflow shows a view with a `url_route` is sandboxed, and no link leads
out of it (Airflow 3.1 to 3.3), neither to a DAG's page nor to the console. It stands below *Browse*: at the top of the
menu Airflow 3.3 makes it a button that leads nowhere.

Where the package is installed, its entry point `airflow.plugins` names the class; in the plugins folder,
`retraining_plugin.py` does. Airflow takes one of a name.
"""

from airflow.plugins_manager import AirflowPlugin

from retraining.web.lazy import models_page


class RetrainingPlugin(AirflowPlugin):
    """What the API server mounts, and the entry of the menu that leads there."""

    name = "retraining"
    fastapi_apps = [{"app": models_page, "url_prefix": "/retraining", "name": "retraining"}]
    external_views = [{"name": "Models", "href": "retraining/models", "destination": "nav", "category": "browse"}]
