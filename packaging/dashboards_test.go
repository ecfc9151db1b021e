package packaging

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/dragoman-mcp/dragoman/internal/observe"
	"github.com/dragoman-mcp/dragoman/internal/observe/prometheus"
)

var update = flag.Bool("update", false, "write the dashboard and the alert rules anew")

// named returns what Prometheus calls one of our metrics, and label an attribute.
func named(t *testing.T, name string) string {
	t.Helper()
	at := slices.IndexFunc(observe.Metrics, func(m observe.Metric) bool { return m.Name == name })
	if at < 0 {
		t.Fatalf("there is no metric %s", name)
	}
	m := observe.Metrics[at]
	return prometheus.Name(m.Name, m.Shape, m.Unit)
}

func label(key string) string { return prometheus.Label(key) }

// A panel is one picture of the dashboard.
type panel struct{ title, unit, query, legend string }

// panels are made of the names alone, so that a name that changes changes them.
func panels(t *testing.T) (all []panel) {
	quantile := func(metric, by string) string {
		return fmt.Sprintf("histogram_quantile(0.95, sum by (le, %s) (rate(%s_bucket[$__rate_interval])))", label(by), named(t, metric))
	}
	count := func(metric, by string) string {
		return fmt.Sprintf("sum by (%s) (rate(%s_count[$__rate_interval]))", label(by), named(t, metric))
	}
	each := func(metric, by string) string {
		return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", label(by), named(t, metric))
	}
	legend := func(by string) string { return "{{" + label(by) + "}}" }
	add := func(title, unit, query, by string) { all = append(all, panel{title, unit, query, legend(by)}) }
	add("Requests a second, by route", "reqps", count(observe.HTTPDuration, observe.HTTPRoute), observe.HTTPRoute)
	add("Messages of models, 95 % within", "s", quantile(observe.ChatDuration, observe.RequestModel), observe.RequestModel)
	add("First piece of a message, 95 % within", "s", quantile(observe.ChatFirstChunk, observe.RequestModel), observe.RequestModel)
	add("From one piece to the next, 95 % within", "s", quantile(observe.ChatNextChunk, observe.RequestModel), observe.RequestModel)
	add("Tokens a second, by model", "short", fmt.Sprintf("sum by (%s) (rate(%s_sum[$__rate_interval]))", label(observe.RequestModel), named(t, observe.ChatTokens)), observe.RequestModel)
	add("Failed messages of models a second", "short", fmt.Sprintf(`sum by (%[1]s) (rate(%[2]s_count{%[1]s!=""}[$__rate_interval]))`, label(observe.ErrorType), named(t, observe.ChatDuration)), observe.ErrorType)
	add("Calls of tools, 95 % within", "s", quantile(observe.ToolDuration, observe.ToolName), observe.ToolName)
	add("Calls of tools a second, by server", "short", count(observe.ToolDuration, observe.Server), observe.Server)
	add("Failed calls of tools a second", "short", fmt.Sprintf(`sum by (%[1]s) (rate(%[2]s_count{%[1]s!=""}[$__rate_interval]))`, label(observe.ErrorType), named(t, observe.ToolDuration)), observe.ErrorType)
	add("Servers that are up", "short", named(t, observe.ServerUp), observe.Server)
	add("Tools", "short", fmt.Sprintf("sum by (%s) (%s)", label(observe.ToolsState), named(t, observe.Tools)), observe.ToolsState)
	add("Repairs of arguments a second, by rule", "short", each(observe.Repairs, observe.RepairRule), observe.RepairRule)
	add("Results that were cut a second", "short", each(observe.Truncated, observe.Server), observe.Server)
	add("Approvals a second, by verdict", "short", each(observe.Approvals, observe.ApprovalState), observe.ApprovalState)
	add("Calls of unknown outcome a second", "short", each(observe.UnknownOutcome, observe.Server), observe.Server)
	add("Refused by limits a second", "short", each(observe.LimitRefusals, observe.Limit), observe.Limit)
	add("Budgets near their end and used up", "short", fmt.Sprintf("max by (%s, %s) (%s)", label(observe.Budget), label(observe.BudgetState), named(t, observe.Budgets)), observe.Budget)
	add("What waits", "short", named(t, observe.QueueLength), observe.Queue)
	add("Responses in the background", "short", fmt.Sprintf("max by (%s) (%s)", label(observe.RunState), named(t, observe.Runs)), observe.RunState)
	add("Replicas", "short", fmt.Sprintf("max(%s)", named(t, observe.Replicas)), observe.ServiceName)
	add("Requests that are being answered", "short", named(t, observe.OpenStreams), observe.ServiceName)
	add("Transactions of the store, 95 % within", "s", quantile(observe.StoreDuration, observe.StoreKind), observe.StoreKind)
	add("Memory", "bytes", named(t, observe.GoMemoryUsed), observe.MemoryType)
	add("Goroutines", "short", named(t, observe.GoGoroutines), observe.ServiceName)
	return all
}

func dashboard(t *testing.T) []byte {
	var drawn []any
	for i, p := range panels(t) {
		drawn = append(drawn, map[string]any{
			"id": i + 1, "type": "timeseries", "title": p.title, "datasource": map[string]any{"type": "prometheus", "uid": "${source}"},
			"gridPos":     map[string]any{"h": 8, "w": 12, "x": i % 2 * 12, "y": i / 2 * 8},
			"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
			"targets":     []any{map[string]any{"refId": "A", "expr": p.query, "legendFormat": p.legend}},
		})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any{
		"title": "Dragoman", "uid": "dragoman", "schemaVersion": 39, "refresh": "30s", "editable": true, "tags": []string{"dragoman", "mcp"},
		"time":       map[string]any{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": []any{map[string]any{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}},
		"panels":     drawn,
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A rule is one of the alert rules.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rules struct {
	Groups []group `yaml:"groups"`
}

func alerts(t *testing.T) []byte {
	one := func(name, expr, lasting, severity, summary string) rule {
		return rule{name, expr, lasting, map[string]string{"severity": severity}, map[string]string{"summary": summary}}
	}
	server := "{{ $labels." + label(observe.Server) + " }}"
	text, err := yaml.Marshal(rules{[]group{{"dragoman", []rule{
		one("DragomanServerDown", named(t, observe.ServerUp)+" == 0", "5m", "warning", "The MCP server "+server+" is not connected."),
		one("DragomanToolsQuarantined", fmt.Sprintf(`sum by (%s) (%s{%s="quarantined"}) > 0`, label(observe.Server), named(t, observe.Tools), label(observe.ToolsState)), "15m", "info", "Tools of "+server+" wait for somebody's approval, or cannot be used."),
		one("DragomanUnknownOutcomes", fmt.Sprintf("sum by (%s) (%s) > 0", label(observe.Server), happened(named(t, observe.UnknownOutcome))), "0m", "warning", "Nobody knows whether calls of "+server+" ran."),
		one("DragomanModelsFail", fmt.Sprintf(`sum by (%[1]s) (rate(%[2]s_count{%[3]s!=""}[5m])) / sum by (%[1]s) (rate(%[2]s_count[5m])) > 0.1`, label(observe.RequestModel), named(t, observe.ChatDuration), label(observe.ErrorType)), "10m", "warning", "More than a tenth of the messages of {{ $labels."+label(observe.RequestModel)+" }} fail."),
		one("DragomanToolsFail", fmt.Sprintf(`sum by (%[1]s) (rate(%[2]s_count{%[3]s!=""}[5m])) / sum by (%[1]s) (rate(%[2]s_count[5m])) > 0.5`, label(observe.Server), named(t, observe.ToolDuration), label(observe.ErrorType)), "10m", "warning", "More than half of the calls of "+server+" fail."),
		one("DragomanStoreSlow", fmt.Sprintf("histogram_quantile(0.95, sum by (le) (rate(%s_bucket[5m]))) > 1", named(t, observe.StoreDuration)), "10m", "warning", "Transactions of the store take longer than a second."),
		one("DragomanCallsWait", fmt.Sprintf("max by (%s) (%s) > 20", label(observe.Queue), named(t, observe.QueueLength)), "10m", "info", "More than 20 wait at {{ $labels."+label(observe.Queue)+" }}."),
		one("DragomanBudgetNear", fmt.Sprintf("max by (%s, %s) (%s) > 0", label(observe.Budget), label(observe.BudgetState), named(t, observe.Budgets)), "0m", "info", "The budget {{ $labels."+label(observe.Budget)+" }} of somebody is {{ $labels."+label(observe.BudgetState)+" }}."),
		one("DragomanConfigurationRefused", happened(fmt.Sprintf(`%s{%s="refused"}`, named(t, observe.Reloads), label(observe.Outcome))), "0m", "warning", "The configuration was read again and is wrong: the one before it stays."),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("# Made from the names in internal/observe: go test ./packaging -run Dashboards -update\n"), text...)
}

// happened is true of a counter that has counted in the last quarter of an hour. The first
// that a process counts is no increase to Prometheus, since there was no series before it.
func happened(counter string) string {
	return fmt.Sprintf("increase(%[1]s[15m]) > 0 or %[1]s unless %[1]s offset 15m", counter)
}

// TestDashboards: the dashboard and the alert rules are made of the names that the gateway
// has, and can be read by who reads such files.
func TestDashboards(t *testing.T) {
	for file, want := range map[string][]byte{"grafana.json": dashboard(t), "alerts.yaml": alerts(t)} {
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the names make; run go test ./packaging -run Dashboards -update", file)
		}
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	text, _ := os.ReadFile("grafana.json")
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var expressions []string
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	var read rules
	text, _ = os.ReadFile("alerts.yaml")
	if err := yaml.UnmarshalWithOptions(text, &read, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, r := range read.Groups[0].Rules {
		expressions = append(expressions, r.Expr)
	}
	if len(expressions) < 25 {
		t.Errorf("there are %d expressions", len(expressions))
	}
	var known []string
	for _, m := range observe.Metrics {
		known = append(known, prometheus.Name(m.Name, m.Shape, m.Unit))
		for _, key := range m.Attributes {
			known = append(known, label(key))
		}
	}
	for _, expr := range expressions {
		if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
			t.Errorf("%s is no expression", expr)
		}
		for _, word := range regexp.MustCompile("[a-z][a-z_]*_[a-z_]+").FindAllString(strings.ReplaceAll(expr, "$__rate_interval", ""), -1) {
			plain := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(word, "_bucket"), "_count"), "_sum")
			if word != "histogram_quantile" && !slices.Contains(known, word) && !slices.Contains(known, plain) {
				t.Errorf("%s has %s, which nothing is called", expr, word)
			}
		}
	}
}
