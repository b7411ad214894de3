"""The tables of a conversation."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentSession",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=32, unique=True)),
                ("namespace", models.CharField(blank=True, max_length=200)),
                ("thread_id", models.TextField()),
                ("title", models.CharField(blank=True, max_length=200)),
                ("format", models.CharField(max_length=40, null=True)),
                ("format_marked", models.BooleanField(default=False)),
                ("message_count", models.BigIntegerField(default=0)),
                ("token_count", models.BigIntegerField(default=0)),
                ("summary_text", models.TextField(null=True)),
                ("summary_until_index", models.BigIntegerField(null=True)),
                ("summary_tokens", models.BigIntegerField(null=True)),
                ("summary_created_at", models.DateTimeField(null=True)),
                ("is_summarizing", models.BooleanField(default=False)),
                ("lease_owner", models.CharField(max_length=80, null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("revision", models.BigIntegerField(default=0)),
                ("held_until", models.BigIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "user",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AgentMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sequence", models.BigIntegerField()),
                ("role", models.CharField(max_length=20)),
                ("message_id", models.TextField(null=True)),
                ("tokens", models.BigIntegerField()),
                ("payload", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="messages", to="agent.agentsession"
                    ),
                ),
            ],
            options={
                "ordering": ("session", "sequence"),
            },
        ),
        migrations.CreateModel(
            name="DialogStyle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("enable_context_optimization", models.BooleanField(default=True)),
                ("upper_threshold", models.PositiveIntegerField(null=True)),
                ("lower_threshold", models.PositiveIntegerField(null=True)),
                ("token_calculation_method", models.CharField(max_length=10, null=True)),
                ("target_usage_ratio", models.FloatField(null=True)),
                ("summary_token_ratio", models.FloatField(null=True)),
                ("recent_token_ratio", models.FloatField(null=True)),
                ("compress_tool_output", models.BooleanField(null=True)),
                ("tool_output_max_tokens", models.PositiveIntegerField(null=True)),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="dialog_style",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SessionSummary",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("base_revision", models.BigIntegerField()),
                ("trigger", models.CharField(max_length=20)),
                ("reason", models.TextField()),
                ("algorithm", models.CharField(max_length=40)),
                ("text", models.TextField()),
                ("tokens", models.BigIntegerField()),
                ("covers", models.BigIntegerField()),
                ("message_count", models.BigIntegerField()),
                ("original_tokens", models.BigIntegerField()),
                ("input_tokens", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("calls", models.BigIntegerField()),
                ("chunk_count", models.BigIntegerField()),
                ("max_depth", models.BigIntegerField()),
                ("truncated", models.BooleanField()),
                ("model", models.TextField(null=True)),
                ("cost", models.FloatField(null=True)),
                ("seconds", models.FloatField()),
                ("tokens_before", models.BigIntegerField()),
                ("tokens_after", models.BigIntegerField()),
                ("record", models.TextField()),
                ("layout", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("used_at", models.DateTimeField(null=True)),
                ("undone_at", models.DateTimeField(null=True)),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="+",
                        to="agent.sessionsummary",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="summaries", to="agent.agentsession"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="agentsession",
            name="summary",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.RESTRICT, related_name="+", to="agent.sessionsummary"
            ),
        ),
        migrations.CreateModel(
            name="SummaryMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fate", models.CharField(max_length=20)),
                ("reason", models.TextField()),
                (
                    "message",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="agent.agentmessage"
                    ),
                ),
                (
                    "summary",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="covered", to="agent.sessionsummary"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="agentmessage",
            constraint=models.UniqueConstraint(fields=("session", "sequence"), name="one_message_for_each_number"),
        ),
        migrations.AddConstraint(
            model_name="summarymessage",
            constraint=models.UniqueConstraint(fields=("summary", "message"), name="one_fate_in_each_summary"),
        ),
    ]
