"""The OpenAI Agents SDK: the model gets a view of a run's items, and sessions are kept in a store.

    from contextfold.integrations.openai_agents import CompactionSession, compaction

    config = RunConfig(call_model_input_filter=compaction(window=128_000))
    result = await Runner.run(agent, "Go on.", run_config=config)

``compaction(...)`` makes the view. The framework gives a filter no part in what a model answers, so what follows a
refusal needs the model itself: ``compaction(...).provider()`` as ``RunConfig(model_provider=...)``, in place of the
filter, makes the view and sends a smaller one where the provider says that it does not fit.
"""

try:
    import agents as _agents  # noqa: F401
except ImportError as error:
    raise ImportError(
        "contextfold.integrations.openai_agents needs the OpenAI Agents SDK: pip install 'contextfold[openai-agents]'"
    ) from error

from contextfold.integrations.openai_agents.filtering import InputCompaction, compaction
from contextfold.integrations.openai_agents.models import CompactingModel, CompactingProvider
from contextfold.integrations.openai_agents.session import CompactionSession

__all__ = ["CompactingModel", "CompactingProvider", "CompactionSession", "InputCompaction", "compaction"]
