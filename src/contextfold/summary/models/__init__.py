"""Models that write summaries: by name, by client, by LangChain, or any function.

model       SummaryModel, what users write
chain       what can be a summarizer, as models to ask in order
asking      the flow of one request: places, time limits, retries
retry       is a failure worth another try, and when
base        what the flow needs to know of a model; the model that is a function
openai      Chat Completions and Responses; settings: what a request says besides the prompt
anthropic   Messages
langchain   chat models and runnables
clients     the SDKs: classes, keys, addresses
cost        prices
errors      failures that no SDK has an error for
"""

from contextfold.summary.models.model import SummaryModel

__all__ = ["SummaryModel"]
