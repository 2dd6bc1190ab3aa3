# Every target does its own set-up on a fresh machine; see scripts/setup.
.PHONY: demo test test-real lint soak soak-live chaos bench release clean

BIN := .venv/bin

demo: ## set everything up and show a small fleet live
	@scripts/setup
	@$(BIN)/vigil demo

test: ## set everything up, then lint, types, import rules and all tests
	@scripts/setup dev
	@$(MAKE) --no-print-directory lint
	@$(BIN)/pytest -q -n 6 --dist worksteal -m 'not unhurried'
	@$(BIN)/pytest -q -n 4 -m unhurried

test-real: ## install what is missing of the real agents, then run them offline under Vigil (docs/real-clients.md)
	@scripts/setup dev
	@scripts/real-clients
	@$(BIN)/pytest -q -n 2 --dist loadfile tests/real

lint:
	@$(BIN)/ruff check src tests bench scripts/sbom scripts/modules
	@$(BIN)/ruff format --check src tests bench scripts/sbom scripts/modules
	@$(BIN)/mypy

HOURS ?= 1
soak: ## every mutant of the core, then new simulated worlds for HOURS hours (docs/simulator.md)
	@scripts/setup dev
	@$(BIN)/python -m tests.sim --mutants
	@$(BIN)/python -m tests.sim --hours $(HOURS)

soak-live: ## every repeated live test as often as the promises say, then ten minutes of chaos
	@scripts/setup dev
	@VIGIL_SOAK=1 $(BIN)/pytest -q -n 2 --dist loadfile tests/live -m soak --timeout 3600
	@$(BIN)/python -m tests.chaos --minutes 10

MINUTES ?= 30
chaos: ## a real fleet under random faults for MINUTES minutes, with a checker outside; SEED=n lives through the same again (docs/chaos.md)
	@scripts/setup dev
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

bench: ## measure, side by side with other supervisors
	@scripts/setup dev bench
	@$(BIN)/python -m bench

release: ## build sdist and wheel with what locks/ pins, list what they are made of (CycloneDX), and sum it all up
	@scripts/setup
	@rm -rf dist
	@$(BIN)/python -m hatchling build -d dist
	@$(BIN)/python scripts/sbom > dist/sbom.cdx.json
	@cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
