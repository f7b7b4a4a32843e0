module github.com/interlock-go/interlock/lifecycle/inspect

go 1.26.0

require github.com/interlock-go/interlock v0.0.0-00010101000000-000000000000

replace github.com/interlock-go/interlock => ../..
