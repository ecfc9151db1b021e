package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/headervalue"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// params are the parameters of a tool that are repeated in HTTP headers (MCP
// 2026-07-28, "Custom Headers from Tool Parameters").
type params []param

type param struct {
	header string   // Mcp-Param-…, canonical
	path   []string // names of properties, from the root of the arguments
}

const annotation = "x-mcp-header"

// maxAnnotated is the size of a schema that is searched for annotations, which
// is done for each call.
const maxAnnotated = 1 << 20

// paramHeaders reads the annotations of an input schema. An error means that
// the tool must not be used over HTTP.
func paramHeaders(schema json.RawMessage) (params, error) {
	if !bytes.Contains(schema, []byte(annotation)) {
		return nil, nil
	}
	if len(schema) > maxAnnotated {
		return nil, fmt.Errorf("its schema has %d bytes", len(schema))
	}
	var found params
	seen := map[string]bool{}
	err := annotations(schema, nil, true, func(p param) error {
		if key := strings.ToLower(p.header); seen[key] {
			return fmt.Errorf("two parameters want the header %s", p.header)
		} else {
			seen[key] = true
		}
		found = append(found, p)
		return nil
	})
	return found, err
}

// annotations calls f for each annotation in a schema. reachable says that the
// schema is that of a property with a fixed path in the arguments.
func annotations(schema json.RawMessage, path []string, reachable bool, f func(param) error) error {
	if len(path) > 64 {
		return fmt.Errorf("nested too deeply")
	}
	o := object(schema)
	for _, m := range o.Members {
		var err error
		switch m.Name {
		case annotation:
			err = annotated(o, m.Value, path, reachable, f)
		case "const", "enum", "default", "examples": // values, not schemas
		case "properties":
			for _, p := range object(m.Value).Members {
				if err = annotations(p.Value, append(path[:len(path):len(path)], p.Name), reachable, f); err != nil {
					break
				}
			}
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			for _, p := range object(m.Value).Members {
				if err = annotations(p.Value, append(path[:len(path):len(path)], p.Name), false, f); err != nil {
					break
				}
			}
		default:
			parts := []json.RawMessage{m.Value}
			if rawjson.Kind(m.Value) == '[' {
				parts, _ = rawjson.Elements(m.Value)
			}
			for _, part := range parts {
				if err = annotations(part, append(path[:len(path):len(path)], m.Name), false, f); err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// annotated judges one annotation.
func annotated(schema *rawjson.Object, value json.RawMessage, path []string, reachable bool, f func(param) error) error {
	name, ok := rawjson.String(value)
	switch {
	case !ok || !token(name):
		return fmt.Errorf("%s is not the name of a header", bounded(string(value), 80))
	case !reachable || len(path) == 0:
		return fmt.Errorf("the parameter of header %s has no fixed place in the arguments", bounded(name, 80))
	}
	types := []json.RawMessage{schema.Get("type")}
	if rawjson.Kind(types[0]) == '[' {
		types, _ = rawjson.Elements(types[0])
	}
	primitive := 0
	for _, t := range types {
		switch kind, _ := rawjson.String(t); kind {
		case "string", "integer", "boolean":
			primitive++
		case "null":
		default:
			return fmt.Errorf("the parameter of header %s is not a string, integer or boolean", name)
		}
	}
	if primitive != 1 {
		return fmt.Errorf("the parameter of header %s has no single type", name)
	}
	return f(param{http.CanonicalHeaderKey("Mcp-Param-" + name), path})
}

// token reports whether s is a token (RFC 9110, section 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// of returns the headers for a call with these arguments.
func (p params) of(arguments json.RawMessage) []header {
	var headers []header
	for _, param := range p {
		value := arguments
		for _, name := range param.path {
			value = object(value).Get(name)
		}
		switch rawjson.Kind(value) {
		case '"':
			if s, ok := rawjson.String(value); ok {
				headers = append(headers, header{param.header, headervalue.Encode(s)})
			}
		case 't', 'f':
			headers = append(headers, header{param.header, string(value)})
		case '0':
			s := string(value)
			if n, ok := number(value); ok {
				s = strconv.FormatInt(n, 10)
			}
			headers = append(headers, header{param.header, s})
		}
	}
	return headers
}
