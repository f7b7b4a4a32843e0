package prometheus_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
)

// TestAlerts: every metric in the alert rules is one of the collector.
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
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
	}
	require.Len(t, alerts, 9)
}
