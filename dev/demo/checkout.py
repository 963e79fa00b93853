"""Where the demonstration finds what it runs."""

from pathlib import Path

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
CLOUD_CONFIG_PATH = Path(__file__).with_name("localcloud.json")
