package dialect

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated documentation")

// TestDocs keeps docs/dialects.md what the table says. Run it with -update
// after the table has changed.
func TestDocs(t *testing.T) {
	file := filepath.Join("..", "docs", "dialects.md")
	want := docs()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says; run go test ./dialect -run TestDocs -update", file)
	}
}

const docsHead = `# Dialects

<!-- Generated from dialect/table.go by go test ./dialect -run TestDocs -update. Do not edit. -->

A dialect is what a provider, or an engine behind the OpenAI wire, takes in the schemas of tools and in requests.
It is recognised from the address of the API, or named per model in the configuration; an API that nobody recognises
gets ` + "`conservative`" + `. A tool that a dialect does not take as it is, is converted; ` + "`dragoman convert --explain`" + ` shows how.
The arguments that the model writes are brought back into the server's form and judged by the server's own schema.

`

func docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	b.WriteString("| dialect | what it is | recognised by | strict tools |\n|---|---|---|---|\n")
	for _, s := range table {
		strict := "no"
		if s.Strict != nil {
			strict = "where equivalent"
		} else if s.Wire.ImplicitStrict {
			strict = "always, implicitly"
		}
		hosts := "its name only"
		if len(s.Hosts) > 0 {
			hosts = "`" + strings.Join(s.Hosts, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, s.Title, hosts, strict)
	}
	b.WriteString("\nIn a host name a leading dot stands for any subdomain, and `*` for any host with that port.\n\n## Features\n\n" +
		"`R`: refused, or feared to be, so it is never sent. `h`: taken away before the model sees it, so it is said in another way. " +
		"`i`: shown to the model and not enforced. Empty: taken. Columns that end with `!` are strict tools.\n\n")
	matrix(&b)
	b.WriteString("\n## Sources\n\nWhy a feature is not sent. `ours` is a decision of this project.\n")
	for _, s := range table {
		fmt.Fprintf(&b, "\n### %s\n\n", s.Name)
		sources(&b, &s.Rules, "")
		if s.Strict != nil {
			sources(&b, s.Strict, "strict: ")
		}
		limits(&b, reflect.ValueOf(s.Rules), "")
		if s.Strict != nil {
			limits(&b, reflect.ValueOf(*s.Strict), "strict: ")
		}
		limits(&b, reflect.ValueOf(s.Wire), "wire: ")
	}
	return b.String()
}

func matrix(b *strings.Builder) {
	names, rules := []string{}, []*Rules{}
	for i := range table {
		s := &table[i]
		names, rules = append(names, s.Name), append(rules, &s.Rules)
		if s.Strict != nil && s.Name != "responses" {
			names, rules = append(names, s.Name+"!"), append(rules, s.Strict)
		}
	}
	b.WriteString("| feature | " + strings.Join(names, " | ") + " |\n|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, f := range Features {
		fmt.Fprintf(b, "| `%s` |", f)
		for _, r := range rules {
			b.WriteString(" " + map[Support]string{Rejected: "R", Hidden: "h", Ignored: "i"}[r.Cells[f].Support] + " |")
		}
		b.WriteString("\n")
	}
}

// sources lists the features of each source, in the order of Features.
func sources(b *strings.Builder, r *Rules, prefix string) {
	bySource := map[string][]string{}
	var order []string
	for _, f := range Features {
		c := r.Cells[f]
		if c.Source == "" {
			continue
		}
		if bySource[c.Source] == nil {
			order = append(order, c.Source)
		}
		bySource[c.Source] = append(bySource[c.Source], "`"+string(f)+"`")
	}
	for _, source := range order {
		fmt.Fprintf(b, "* %s%s — %s\n", prefix, strings.Join(bySource[source], " "), source)
	}
}

// limits lists the fields of a struct that are set, by their names in YAML.
func limits(b *strings.Builder, v reflect.Value, prefix string) {
	var set []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if field := v.Field(i); name != "cells" && !field.IsZero() {
			set = append(set, fmt.Sprintf("`%s: %v`", name, field.Interface()))
		}
	}
	if len(set) > 0 {
		fmt.Fprintf(b, "* %s%s\n", prefix, strings.Join(set, " "))
	}
}

func TestFeaturesAreListedOnce(t *testing.T) {
	sorted := slices.Sorted(slices.Values(Features))
	if n := len(slices.Compact(sorted)); n != len(Features) {
		t.Errorf("%d features, %d of them differ", len(Features), n)
	}
}
