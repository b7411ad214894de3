"""The conversation in Django's own models: sessions, their messages, their summaries, and the options of a user.

The names of the summary's columns are those that contextfold gives to what it records (``NewSummary.columns``), so that
``store`` can pass them on as they are. Times are datetimes here; contextfold's are seconds since 1970.
"""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.db import models


class AgentSession(models.Model):
    """A conversation. What is said of the summary is what the summary in force says; None where there is none."""

    key = models.CharField(max_length=32, unique=True)  # of namespace and thread id, however long that is
    namespace = models.CharField(max_length=200, blank=True)
    thread_id = models.TextField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE)
    title = models.CharField(max_length=200, blank=True)
    format = models.CharField(max_length=40, null=True)
    format_marked = models.BooleanField(default=False)
    message_count = models.BigIntegerField(default=0)
    token_count = models.BigIntegerField(default=0)
    summary = models.ForeignKey("SessionSummary", null=True, on_delete=models.RESTRICT, related_name="+")
    summary_text = models.TextField(null=True)
    summary_until_index = models.BigIntegerField(null=True)
    summary_tokens = models.BigIntegerField(null=True)
    summary_created_at = models.DateTimeField(null=True)
    is_summarizing = models.BooleanField(default=False)
    lease_owner = models.CharField(max_length=80, null=True)
    lease_until = models.DateTimeField(null=True)
    lease_seconds = models.FloatField(null=True)
    revision = models.BigIntegerField(default=0)
    held_until = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.title or self.thread_id


class AgentMessage(models.Model):
    """One message, as the provider has it. Never changed, never deleted by a summary."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="messages")
    sequence = models.BigIntegerField()
    role = models.CharField(max_length=20)
    message_id = models.TextField(null=True)
    tokens = models.BigIntegerField()
    payload = models.TextField()  # JSON as text: jsonb would refuse some of what tools print
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("session", "sequence")
        constraints = (models.UniqueConstraint(fields=("session", "sequence"), name="one_message_for_each_number"),)

    @property
    def wire(self) -> dict[str, Any]:
        """The message as it was appended."""
        found: dict[str, Any] = json.loads(self.payload)
        return found


class SessionSummary(models.Model):
    """A summary, with what it took. In force, superseded, undone, or only prepared."""

    session = models.ForeignKey(AgentSession, on_delete=models.CASCADE, related_name="summaries")
    parent = models.ForeignKey("self", null=True, on_delete=models.RESTRICT, related_name="+")
    base_revision = models.BigIntegerField()
    trigger = models.CharField(max_length=20)
    reason = models.TextField()
    algorithm = models.CharField(max_length=40)
    text = models.TextField()
    tokens = models.BigIntegerField()
    covers = models.BigIntegerField()
    message_count = models.BigIntegerField()
    original_tokens = models.BigIntegerField()
    input_tokens = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    calls = models.BigIntegerField()
    chunk_count = models.BigIntegerField()
    max_depth = models.BigIntegerField()
    truncated = models.BooleanField()
    model = models.TextField(null=True)
    cost = models.FloatField(null=True)  # US dollars
    seconds = models.FloatField()
    tokens_before = models.BigIntegerField()
    tokens_after = models.BigIntegerField()
    record = models.TextField()
    layout = models.TextField()
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)


class SummaryMessage(models.Model):
    """A message that a summary took out of what the model gets, and why."""

    summary = models.ForeignKey(SessionSummary, on_delete=models.CASCADE, related_name="covered")
    message = models.ForeignKey(AgentMessage, on_delete=models.CASCADE, related_name="+")
    fate = models.CharField(max_length=20)
    reason = models.TextField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("summary", "message"), name="one_fate_in_each_summary"),)


class DialogStyle(models.Model):
    """The options of a user. None is the default of the application, or of contextfold."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="dialog_style")
    enable_context_optimization = models.BooleanField(default=True)
    upper_threshold = models.PositiveIntegerField(null=True)
    lower_threshold = models.PositiveIntegerField(null=True)
    token_calculation_method = models.CharField(max_length=10, null=True)  # estimate, tiktoken
    target_usage_ratio = models.FloatField(null=True)
    summary_token_ratio = models.FloatField(null=True)
    recent_token_ratio = models.FloatField(null=True)
    compress_tool_output = models.BooleanField(null=True)
    tool_output_max_tokens = models.PositiveIntegerField(null=True)
