"""Settings of the example: one app, one database, and how its agent's context is kept small."""

import os
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DJANGO_AGENT_DATA", BASE))

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "only for this example")
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "project.urls"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "agent"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]

# SQLite lets one connection write at a time. A transaction that begins with reading cannot become a writing one while
# another writes, so transactions say at their beginning that they will write (IMMEDIATE), and wait their turn.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA / "agent.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": "PRAGMA journal_mode=WAL"},
        "TEST": {"NAME": DATA / "test.sqlite3"},  # a file: tests write from several threads
    }
}

AGENT = {
    "window": 128_000,  # input tokens of the model that answers
    "model": "gpt-5-mini",
    "summarizer": None,  # such as "openai:gpt-5-nano"; None: the built-in one, which asks no model
    "send": "agent.model.send",  # from a view to a response
}
