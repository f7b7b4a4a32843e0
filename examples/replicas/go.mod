module github.com/interlock-go/interlock/examples/replicas

go 1.26.0

require (
	github.com/interlock-go/interlock v0.0.0-00010101000000-000000000000
	github.com/interlock-go/interlock/internal/enginetest v0.0.0-00010101000000-000000000000
	github.com/interlock-go/interlock/lifecycle/inspect v0.0.0-00010101000000-000000000000
	github.com/jackc/pgx/v5 v5.12.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sync v0.24.0
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/go-sql-driver/mysql v1.10.1 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace github.com/interlock-go/interlock => ../..

replace github.com/interlock-go/interlock/internal/enginetest => ../../internal/enginetest

replace github.com/interlock-go/interlock/lifecycle/inspect => ../../lifecycle/inspect

replace github.com/interlock-go/interlock/lifecycle/pgnotify => ../../lifecycle/pgnotify
