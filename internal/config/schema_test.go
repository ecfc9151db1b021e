package config_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dragoman-mcp/dragoman/internal/config"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("config.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("config.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON reads YAML the way an editor does before it applies a schema.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestSchemaAccepts(t *testing.T) {
	schema := compileSchema(t)
	for name, text := range map[string]string{
		"empty":   "{}",
		"default": string(config.Effective(config.Default())),
		"first example": `
listen: 127.0.0.1:8787
models:
  - match: "gpt-*"
    base_url: https://api.openai.com/v1
    api_key: ${OPENAI_API_KEY}
    dialect: openai
mcpServers:
  files: {command: npx, args: [-y, "some-server@1.2.3", ./docs]}
  github: {url: https://example.com/mcp, headers: {Authorization: "Bearer ${GITHUB_TOKEN}"}}
`,
		"anchors and sections without keys": "x-common: &c {timeout: 1s}\nloop:\nmcpServers:\n  a: {command: x}\n",
		"variables":                         "loop: {rounds: \"${R}\", bytes: \"${B:-1MiB}\", timeout: \"${T}\"}\nlog: {level: \"${L}\"}\nmcpServers: {a: {command: x, disabled: \"${D}\"}}",
		"other clients' keys":               "mcpServers: {a: {command: x, type: stdio, autoApprove: [a], disabledTools: [b], icon: i, _note: n, enabled: true}}",
		"text of all kinds":                 "mcpServers: {a: {command: x, args: [1, true, a], env: {A: 1}}}",
		"any label":                         "mcpServers: {a__b: {command: x}, a b: {command: x}, " + strings.Repeat("x", 33) + ": {command: x}}",
		"an editor's file":                  `{"$schema": "x", "inputs": [{"id": "a", "type": "promptString", "password": true, "title": "A"}], "servers": {"s": {"type": "http", "url": "http://s.test", "headers": {"A": "${input:a}"}}}}`,
		"sizes":                             "http: {max_body: 1 MB}\nresults: {max_message: 65536}",
	} {
		t.Run(name, func(t *testing.T) {
			if err := schema.Validate(asJSON(t, text)); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// What the schema refuses, reading refuses, too.
func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t)
	for name, text := range map[string]string{
		"unknown key":             "listn: a",
		"unknown key in section":  "log: {levle: info}",
		"unknown key in model":    "models: [{base_url: http://a, url: b}]",
		"unknown key in server":   "mcpServers: {a: {comand: x}}",
		"unknown key in filter":   "mcpServers: {a: {command: x, tools: {only: [a]}}}",
		"model without address":   "models: [{match: a}]",
		"input without an id":     "inputs: [{type: promptString}]",
		"kind of input":           "inputs: [{id: a, type: guess}]",
		"enum":                    "log: {level: loud}",
		"time without unit":       "loop: {timeout: 30}",
		"size":                    "loop: {bytes: 5 apples}",
		"number below its least":  "results: {limit: 10}",
		"size below its least":    "mcp: {page: 100}",
		"number above its most":   "loop: {parallel: 1001}",
		"text for a number":       "loop: {rounds: many}",
		"text for a boolean":      "mcpServers: {a: {command: x, disabled: maybe}}",
		"list for a mapping":      "mcpServers: [a]",
		"mapping in a list":       "mcpServers: {a: {command: x, args: [{a: b}]}}",
		"number for text":         "listen: 8787",
		"number for model's name": "models: [{base_url: http://a, name: 4}]",
	} {
		t.Run(name, func(t *testing.T) {
			if schema.Validate(asJSON(t, text)) == nil {
				t.Error("the schema accepts it")
			}
			if _, err := config.Parse("test.yaml", []byte(text), env()); err == nil {
				t.Error("reading accepts it")
			}
		})
	}
}

func TestSchemaDescribesEveryKey(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case []any:
			for _, item := range value {
				walk(path, item)
			}
		case map[string]any:
			for name, item := range value {
				if properties, ok := item.(map[string]any); ok && name == "properties" {
					for key, schema := range properties {
						if described, _ := schema.(map[string]any); described["description"] == nil {
							t.Errorf("%s.%s has no description", path, key)
						}
						walk(path+"."+key, schema)
					}
					continue
				}
				walk(path, item)
			}
		}
	}
	walk("", document)
}
