# "make" lists the targets. A machine needs Go, make and a POSIX shell, no more:
# the tools are pinned in internal/tools/go.mod and come with "go tool".

SHELL := /bin/sh
.DEFAULT_GOAL := help
ifndef AT_ONCE
.NOTPARALLEL:
endif

# Every module is built on its own, even if a directory above has a go.work.
export GOWORK := off

GO       ?= go
FUZZTIME ?= 60s

TOOLS := internal/tools
TOOL  := $(GO) tool -modfile="$(CURDIR)/$(TOOLS)/go.mod"

# The modules are found in the file system, which also works before a commit and without git.
MODULES := $(sort $(patsubst %/go.mod,%,$(shell find . \( -name '.?*' -o -name testdata -o -name vendor \) -prune -o -name go.mod -print)))
# The module of the tools has no packages.
CODE := $(filter-out ./$(TOOLS),$(MODULES))
# "make browser" runs its tests: they need Chromium.
BROWSER := ./internal/browsertest

# $(call in_each,MODULES,COMMAND) runs the command in every module, also after
# one has failed, and fails if one has.
define in_each
status=0; for m in $(1); do (cd "$$m" && $(2)) || { status=1; echo "make $@: failed in $$m" >&2; }; done; exit $$status
endef

# Sets the shell variable race. Building a package that needs C and the race detector shows
# whether Go has both on this platform.
define find_race
race=-race; $(GO) build -race runtime/cgo 2>/dev/null || { race=; echo "make $@: no C compiler that Go can use, therefore no race detector"; }
endef

# SQLite for Go is C that was translated into one package. With the race detector its build
# takes minutes, and its tests take several times as long. So do those of etcd. "make test"
# therefore leaves out the race detector here; "make long" uses it.
UNRACED := ./internal/enginetest ./internal/etcdtest ./examples/sqlite ./examples/service ./lifecycle/cmd/interlock

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s  %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

RUNS ?= 10
.PHONY: busy
busy: ## make test RUNS times in a row, beside four busy loops, and print the times
	@loops=; trap 'kill $$loops' EXIT INT TERM; for i in 1 2 3 4; do while :; do :; done & loops="$$loops $$!"; done; \
	for i in $$(seq $(RUNS)); do start=$$(date +%s); $(MAKE) --no-print-directory test || exit 1; \
		echo "make busy: run $$i of $(RUNS) in $$(($$(date +%s) - start)) s"; done

.PHONY: demo
demo: ## show the main job: run examples/quickstart
	@$(GO) run ./examples/quickstart

.PHONY: test
test: vet fmt-check tidy-check ## check and test every module, most with the race detector
	@status=0; $(MAKE) --no-print-directory -k -j2 AT_ONCE=1 raced unraced || status=1; $(untested); exit $$status

# A package takes minutes where it waits for servers, and much longer on a busy machine.
IN_TIME := -timeout=30m

# The two parts of the tests run at the same time: one computes, one waits for servers.
.PHONY: raced unraced
raced:
	@$(find_race); ( $(call in_each,$(filter-out $(UNRACED) $(BROWSER),$(CODE)),$(GO) test $$race $(IN_TIME) -shuffle=on ./... && { [ -z "$$race" ] || $(pinned); }) ); status=$$?; $(narrow) || status=1; exit $$status
unraced:
	@$(call in_each,$(UNRACED),$(GO) test $(IN_TIME) -shuffle=on ./...)

# On 386 an int has 32 bits, and atomic words must be aligned. Running a program shows
# whether this machine can execute it.
narrow = if ! CGO_ENABLED=0 GOARCH=386 $(GO) test -run '^$$' ./internal/ratio >/dev/null 2>&1; \
	then echo "make $@: this machine runs no program for 386: its tests are left out"; \
	else CGO_ENABLED=0 GOARCH=386 $(GO) test ./fsm ./lock ./queue; fi

# The race detector allocates. Tests that pin allocations therefore run again without it, in
# the packages that have such tests. Only failures are printed.
pinned = { dirs=$$($(GO) list -f '{{.Dir}}' ./... | while read -r d; do \
		if grep -qsE '^func Test[A-Za-z]*(Alloc|CostsTheSame)' "$$d"/*_test.go; then echo "$$d"; fi; done); \
	[ -z "$$dirs" ] || out=$$($(GO) test -run 'Alloc|CostsTheSame' $$dirs 2>&1) || { echo "$$out"; false; }; }

# Prints what was left out, because skipped tests print nothing here.
untested = out=; \
	[ -n "$$INTERLOCK_POSTGRES_DSN" ] || out="PostgreSQL (INTERLOCK_POSTGRES_DSN)"; \
	[ -n "$$INTERLOCK_MYSQL_DSN" ] || out="$${out:+$$out, }MariaDB or MySQL (INTERLOCK_MYSQL_DSN)"; \
	[ -z "$$out" ] || echo "make $@: not run on $$out: set what is in brackets, or call make engines"; \
	echo "make $@: the operator's page was not opened in a browser: call make browser"

RUN ?= test

.PHONY: engines
engines: ## make test, or RUN=long or RUN=faults, with PostgreSQL and MariaDB: of this machine, or started for it
	@REQUIRE_ENGINES=1 $(GO) run -C internal/enginetest ./engines $(MAKE) -C "$(CURDIR)" --no-print-directory $(RUN)

.PHONY: browser
browser: ## the operator's page in Chromium; SHOTS=DIRECTORY keeps the screenshots
	@cd $(BROWSER) && REQUIRE_BROWSER=1 SHOTS="$(abspath $(SHOTS))" $(GO) test -count=1 ./...

# The models of package queue make their many cases without the race detector: it would need more
# memory than a machine has.
.PHONY: long
long: ## the same tests without limits, and the long outages: sets INTERLOCK_LONG=1
	@$(find_race); ( $(call in_each,$(filter-out $(BROWSER),$(CODE)),INTERLOCK_LONG=1 $(GO) test $$race -shuffle=on -timeout=0 ./...) ); status=$$?; \
	INTERLOCK_LONG=1 $(GO) test -timeout=0 -run 'Model|Random' ./queue || status=1; $(untested); exit $$status

# Tests that kill and stop processes and servers, cut connections and fill disks.
FAULTS := ./internal/etcdtest ./internal/enginetest/sqllocktest ./internal/enginetest/pgqueuetest ./examples/replicas

.PHONY: faults
faults: ## the faults of several replicas at full size, with their counts: make engines RUN=faults
	@$(call in_each,$(FAULTS),INTERLOCK_LONG=1 $(GO) test -count=1 -timeout=0 -v ./...)

# Without a package argument, go test connects the tests to the terminal: they show their progress.
.PHONY: verify
verify: ## explore the protocols of internal/models to their end, and print the counts
	@INTERLOCK_LONG=1 $(GO) test -C internal/models -count=1 -timeout=0 -v -run '^TestVerify'

.PHONY: lint
lint: vet ## vet, for 32 bits and Windows too, staticcheck, and functions that nothing reaches
	@CGO_ENABLED=0 GOARCH=386 $(GO) vet ./...
	@CGO_ENABLED=0 GOOS=windows $(GO) vet ./...
	@$(call in_each,$(CODE),$(TOOL) staticcheck ./...)
	@$(call in_each,$(filter-out $(DRIVERS),$(CODE)),$(call reached,<module>))
	@$(call in_each,./internal/enginetest ./internal/etcdtest,$(call reached,/interlock/($(subst $(space),|,$(DRIVERS:./%=%)))))

# $(call reached,FILTER) fails if a module has functions in packages that match the filter
# which no program and no test of the module reaches.
reached = dead=$$($(TOOL) deadcode -test -filter '$(1)' ./...) && \
	{ [ -z "$$dead" ] || { echo "no program and no test reaches:"; echo "$$dead"; false; }; }
# The tests of these modules are in internal/enginetest and internal/etcdtest.
DRIVERS := ./lock/sqllock ./lock/etcdlock ./lifecycle/etcdstore ./queue/pgqueue
space := $(subst ,, )

.PHONY: vet
vet: ## go vet
	@$(call in_each,$(CODE),$(GO) vet ./...)

.PHONY: fmt-check
fmt-check: ## fail if "make fmt" would change a file
	@files=$$($(TOOL) gofumpt -l .) || exit 1; \
	[ -z "$$files" ] || { echo "not formatted, see make fmt:"; echo "$$files"; exit 1; }

.PHONY: tidy-check
tidy-check: ## fail if "go mod tidy" would change a module
	@$(call in_each,$(MODULES),$(GO) mod tidy -diff)

.PHONY: fmt
fmt: ## format every file
	@$(TOOL) gofumpt -l -w .

.PHONY: generate
generate: ## go generate
	@$(call in_each,$(CODE),$(GO) generate ./...)

.PHONY: bench
bench: ## measure every ratio that has a goal, judge none
	@{ ( $(call in_each,$(CODE),$(GO) test -run '^$$' -bench '^BenchmarkRatios$$' -benchtime 1x -timeout=0 ./...) ) || echo FAIL; } | awk ' \
	/^ratio / { print; fflush(); next } \
	/^machine / { machine = $$0; next } \
	/^(PASS|ok|\?|goos:|goarch:|pkg:|cpu:|Benchmark)/ { next } \
	{ rest = rest $$0 "\n" } \
	/FAIL/ { failed = 1 } \
	END { if (failed) { printf "%s", rest; exit 1 }; print machine }'

.PHONY: fuzz
fuzz: ## run every fuzz test for FUZZTIME (60s)
	@$(call in_each,$(CODE),sh "$(CURDIR)/$(TOOLS)/fuzz.sh" $(FUZZTIME))

# Every mutant runs the tests of its package, which takes an hour for some packages. The time
# limit of a run is the time of the unchanged tests, times the coefficient. With a smaller
# coefficient, slow tests on a busy machine count as killed mutants. Without -count=1 the
# unchanged tests may come from the cache, and then every mutant exceeds the limit.
MUTANTS ?= fsm lifecycle lock queue

.PHONY: mutants
mutants: ## change operators in the packages MUTANTS, and print the changes that no test detects
	@unset UPDATE_DOCS; for p in $(MUTANTS); do \
		GOFLAGS="$$GOFLAGS -count=1" $(TOOL) gremlins unleash --exclude-files / --timeout-coefficient 20 --output-statuses lt ./$$p || exit 1; done

.PHONY: cover
cover: ## how much of the root module its tests reach
	@out=$$($(GO) test -coverprofile=coverage.out -coverpkg=./... ./...) || { echo "$$out"; exit 1; }
	@$(GO) tool cover -func=coverage.out | tail -n 1

.PHONY: size
size: ## print lines of code and exported identifiers by package
	@$(GO) run ./internal/size

.PHONY: apidiff
apidiff: ## what changed in the exported API since the last tag
	@sh $(TOOLS)/apidiff.sh
