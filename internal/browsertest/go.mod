module github.com/interlock-go/interlock/internal/browsertest

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.2
	github.com/chromedp/chromedp v0.23.0
	github.com/interlock-go/interlock v0.0.0-00010101000000-000000000000
	github.com/interlock-go/interlock/lifecycle/inspect v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
)

replace (
	github.com/interlock-go/interlock => ../..
	github.com/interlock-go/interlock/lifecycle/inspect => ../../lifecycle/inspect
)
