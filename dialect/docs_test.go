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
	b.WriteString("| dialect | what it is | strict tools |\n|---|---|---|\n")
	for _, s := range table {
		strict := "no"
		if s.Strict != nil {
			strict = "where equivalent"
		} else if s.Wire.ImplicitStrict {
			strict = "always, implicitly"
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", s.Name, s.Name, s.Title, strict)
	}
	b.WriteString(docsEverywhere)
	sources(&b, everywhere, nil)
	for _, s := range table {
		fmt.Fprintf(&b, "\n## %s\n\n%s.%s\n\n", s.Name, s.Title, hosts(s.Hosts))
		sources(&b, s.Rules.Cells, everywhere)
		limits(&b, reflect.ValueOf(s.Rules), "Rules")
		if s.Strict != nil {
			b.WriteString("\nStrict tools:\n\n")
			sources(&b, s.Strict.Cells, everywhere)
			limits(&b, reflect.ValueOf(*s.Strict), "Rules")
		}
		limits(&b, reflect.ValueOf(s.Wire), "Wire")
	}
	return b.String()
}

const docsEverywhere = `
## How to read this

Each dialect has a list of what it does not simply take, and how we know: a document, a source with its version, an
issue, or a measurement. "ours" is a decision of this project, to be on the safe side. What a list does not name is
taken as it is.

* **not sent**: refused, or feared to be. What it says is said in another way, at last in the description.
* **dropped**: taken away on the way to the model, so it is said in another way as well.
* **not enforced**: shown to the model, which need not keep to it.

Rules and wire are the names of the keys of an entry in ` + "`dialects`" + ` of the configuration, with which a dialect of
one's own is made, for one model or for all: ` + "`spec: {strict: {maps_as_pairs: false}}`" + ` on top of ` + "`openai-strict`" + `
keeps maps as they are, ` + "`spec: {wire: {max_tools: 200}}`" + ` sends more tools. In a host name a leading dot stands for any
subdomain, and ` + "`*`" + ` for any host with that port.

## In all dialects

`

func hosts(list []string) string {
	if len(list) == 0 {
		return " Recognised by its name only."
	}
	return " Recognised by `" + strings.Join(list, "`, `") + "`."
}

// verdicts says what becomes of a feature.
var verdicts = map[Support]string{Rejected: "not sent", Hidden: "dropped", Ignored: "not enforced"}

// sources lists the features by what becomes of them and how that is known, in
// the order of Features, without those that are as in base.
func sources(b *strings.Builder, cells, base map[Feature]Cell) {
	for _, support := range []Support{Rejected, Hidden, Ignored} {
		bySource := map[string][]string{}
		var order []string
		for _, f := range Features {
			c, ok := cells[f]
			if !ok || c.Support != support || base != nil && base[f] == c {
				continue
			}
			if bySource[c.Source] == nil {
				order = append(order, c.Source)
			}
			bySource[c.Source] = append(bySource[c.Source], "`"+string(f)+"`")
		}
		for _, source := range order {
			fmt.Fprintf(b, "* **%s** %s (%s)\n", verdicts[support], strings.Join(bySource[source], ", "), source)
		}
	}
	if taken := takenAfterAll(cells, base); len(taken) > 0 {
		fmt.Fprintf(b, "* taken, unlike elsewhere: %s\n", strings.Join(taken, ", "))
	}
}

// takenAfterAll are the features that base does not take and cells do, or that a
// source says are taken.
func takenAfterAll(cells, base map[Feature]Cell) []string {
	var taken []string
	for _, f := range Features {
		c, ok := cells[f]
		if ok && c.Support == Taken && (base[f].Support != Taken || c.Source != "") {
			name := "`" + string(f) + "`"
			if c.Source != "" {
				name += " (" + c.Source + ")"
			}
			taken = append(taken, name)
		}
	}
	return taken
}

// limits lists the fields of a struct that are set, by their names in YAML.
func limits(b *strings.Builder, v reflect.Value, what string) {
	var set []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if field := v.Field(i); name != "cells" && !field.IsZero() {
			set = append(set, fmt.Sprintf("`%s: %v`", name, field.Interface()))
		}
	}
	if len(set) > 0 {
		fmt.Fprintf(b, "* %s: %s\n", what, strings.Join(set, ", "))
	}
}

func TestFeaturesAreListedOnce(t *testing.T) {
	sorted := slices.Sorted(slices.Values(Features))
	if n := len(slices.Compact(sorted)); n != len(Features) {
		t.Errorf("%d features, %d of them differ", len(Features), n)
	}
}
