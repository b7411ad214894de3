from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent", "0001_initial")]

    operations = [
        migrations.AddField(model_name="agentsession", name="lease_seconds", field=models.FloatField(null=True)),
    ]
