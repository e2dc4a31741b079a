# `make` lists the commands. Each does its work in a script or one line, so that it also runs alone.

ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help test check bench docs

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

test: ## install what the tests need, then run all of them
	@scripts/test $(ARGS)

check: ## formatting, clippy, rustdoc and shell scripts, all without warnings
	@scripts/check

bench: ## measure spinney beside every peer that can be installed; one run with options in ARGS="..."
	@scripts/bench $(ARGS)

docs: ## the API documentation, in target/doc
	@scripts/prepare
	@cargo doc --workspace --no-deps --lib
	@echo "open target/doc/spinney/index.html"
