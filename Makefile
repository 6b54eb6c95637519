# `make help` lists the targets. One target directory serves them all.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help demo test lint bench bench-kafka fuzz-parse soak soak-restore test-kafka soak-kafka kafka-up kafka-down

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Play a bundled day through the worker and show what became of each response.
	@scripts/setup.sh
	@cargo run -q -- demo

test: ## Format, lint, core check and all tests; the last line counts them.
	@scripts/test.sh

lint: ## Format and lint, and cargo-deny where it is installed.
	@scripts/setup.sh
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --test kafka -- -D warnings
	@if command -v cargo-deny >/dev/null; then cargo deny --all-features check; \
	else echo "lint: cargo-deny is not installed, so licences and advisories were not checked (cargo install --locked cargo-deny)"; fi

bench: ## Measure ratios against a baseline in the same run.
	@scripts/setup.sh
	cargo bench --bench ratios

bench-kafka: ## Measure the worker on an Apache Kafka that it starts itself, or on TOOLGATE_BENCH_BROKER (loopback alone).
	@scripts/setup.sh
	cargo bench --bench on_kafka

DOCUMENTS ?= 10000000
fuzz-parse: ## Compare the parser with its slow reference on DOCUMENTS generated documents (10 million).
	@scripts/setup.sh
	TOOLGATE_DOCUMENTS=$(DOCUMENTS) cargo test --test parse agreement -- --nocapture

KILLS ?= 500
soak: ## Kill a loaded worker KILLS times with SIGKILL and account for every record.
	@scripts/setup.sh
	TOOLGATE_KILLS=$(KILLS) cargo test --test kill -- --nocapture

BINDINGS ?= 1000000
soak-restore: ## Kill a worker again and again while it restores BINDINGS outstanding requests, and compare all of them.
	@scripts/setup.sh
	TOOLGATE_KAFKA_RESTORE=$(BINDINGS) TOOLGATE_KAFKA_RESTORE_KILLS=20 cargo test --test kafka restore -- --nocapture

NODES ?= 1
test-kafka: ## Test the Kafka log on a real Apache Kafka that it starts itself (Java 17 and Maven).
	@scripts/setup.sh
	cargo test --test kafka

soak-kafka: ## Kill three workers of a real Apache Kafka 300 times under 100,000 requests and account for every record.
	@scripts/setup.sh
	TOOLGATE_KAFKA_KILLS=300 TOOLGATE_KAFKA_REQUESTS=100000 TOOLGATE_KAFKA_BATCH=750 \
		cargo test --test kafka -- --nocapture kills::

kafka-up: ## Start a real Apache Kafka with NODES nodes on free loopback ports (Java 17 and Maven) and print its address.
	@scripts/kafka.sh up --nodes $(NODES)

kafka-down: ## Stop it and remove its data.
	@scripts/kafka.sh down
