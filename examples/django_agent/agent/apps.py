"""The app."""

from django.apps import AppConfig


class AgentConfig(AppConfig):
    """A conversation with an agent, kept in Django's own models."""

    name = "agent"
