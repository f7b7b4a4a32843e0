package prometheus_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/interlock-go/interlock/lifecycle"
	metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
)

// alertValues returns values of labels: codes, and the causes and resolutions of sweeps.
func alertValues() (values []string) {
	for _, err := range []error{
		nil, lifecycle.ErrUnavailable, lifecycle.ErrUnknownOutcome, lifecycle.ErrClosed, context.DeadlineExceeded, errors.New("disk"),
		&lifecycle.OutcomeError{Outcome: lifecycle.Canceled}, &lifecycle.OutcomeError{Outcome: lifecycle.Lost},
	} {
		values = append(values, lifecycle.Code(err))
	}
	registry, collector := client.NewRegistry(), metrics.New()
	registry.MustRegister(collector)
	collector.Observer(vmTable.Table())
	families, _ := registry.Gather()
	for _, family := range families {
		if family.GetName() == "interlock_sweep_results_total" {
			for _, m := range family.GetMetric() {
				for _, label := range m.GetLabel() {
					values = append(values, label.GetValue())
				}
			}
		}
	}
	return values
}

// grouped returns the labels that the result of an expression has.
func grouped(expr string) []string {
	by := regexp.MustCompile(`by \(([^)]*)\)`).FindStringSubmatch(expr)
	return strings.Split(by[1], ", ")
}

// labelsIn returns the labels that a text shows.
func labelsIn(text string) (names []string) {
	for _, name := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, name[1])
	}
	return names
}

// TestAlerts: every metric in the alert rules is one of the collector, every value of a
// label exists, and a summary has only labels of the result.
func TestAlerts(t *testing.T) {
	data, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))

	known := map[string]bool{}
	descs := make(chan *client.Desc)
	go func() {
		metrics.New().Describe(descs)
		close(descs)
	}()
	fqName := regexp.MustCompile(`fqName: "(\w+)"`)
	for desc := range descs {
		name := fqName.FindStringSubmatch(desc.String())[1]
		known[name] = true
		if strings.HasSuffix(name, "_seconds") {
			known[name+"_bucket"], known[name+"_count"] = true, true
		}
	}
	values := alertValues()
	alerts := map[string]bool{}
	for _, rule := range file.Groups[0].Rules {
		require.False(t, alerts[rule.Alert], rule.Alert)
		alerts[rule.Alert] = true
		names := regexp.MustCompile(`interlock_\w+`).FindAllString(rule.Expr, -1)
		require.NotEmpty(t, names, rule.Alert)
		for _, name := range names {
			require.True(t, known[name], "%s: %s", rule.Alert, name)
		}
		require.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Alert)
		for _, matcher := range regexp.MustCompile(`\b(?:code|cause|resolution)[=!~]+"([^"]+)"`).FindAllStringSubmatch(rule.Expr, -1) {
			for value := range strings.SplitSeq(matcher[1], "|") {
				require.Contains(t, values, value, rule.Alert)
			}
		}
		require.Subset(t, grouped(rule.Expr), labelsIn(rule.Annotations["summary"]), rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
	}
	require.Len(t, alerts, 9)
}
