package config

import (
	"fmt"
	"slices"
	"strings"
)

// suggest returns a hint with the key that was probably meant, or with all that
// there are.
func suggest(name string, fields []field) string {
	if hint := meant(name, fields); hint != "" {
		return hint
	}
	return "The keys here are " + strings.Join(fieldNames(fields), ", ") + "."
}

// meant returns a hint with the key that was probably meant; nothing when none
// looks like it.
func meant(name string, fields []field) string { return ask(likely(name, fields)) }

// likely returns the key that was probably meant; nothing when none looks like it.
func likely(name string, fields []field) string {
	names := fieldNames(fields)
	if other := otherWords[fold(name)]; slices.Contains(names, other) {
		return other
	}
	return nearest(name, names)
}

func fieldNames(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// otherWords are words that people, and some clients, have for our keys and that
// look different.
var otherWords = map[string]string{
	"cmd": "command", "exec": "command", "executable": "command", "program": "command", "run": "command",
	"argv": "args", "arguments": "args", "params": "args", "parameters": "args",
	"envs": "env", "environmentvariables": "env", "vars": "env", "variables": "env",
	"dir": "cwd", "directory": "cwd", "workdir": "cwd", "workingdir": "cwd",
	"uri": "url", "endpoint": "url", "address": "url", "href": "url",
	"httpheaders": "headers", "requestheaders": "headers",
	"apibase": "base_url", "endpointurl": "base_url", "key": "api_key", "token": "api_key",
	"port": "listen", "bind": "listen", "host": "listen", "addr": "listen",
	"mcp": "mcpServers", "upstreams": "models", "providers": "models",
}

// Nearest returns a hint with the name that looks most like text; nothing when
// none does.
func Nearest(text string, names []string) string { return ask(nearest(text, names)) }

// nearest returns the name that looks most like text; nothing when none does.
func nearest(text string, names []string) string {
	best, bestDistance := "", 1+max(1, len(text)/3)
	for _, name := range names {
		if d := distance(fold(text), fold(name)); d < bestDistance && d < len(name) {
			best, bestDistance = name, d
		}
	}
	return best
}

// ask returns a hint with a name, if there is one.
func ask(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("Did you mean %s?", name)
}

// fold makes baseUrl and base-url equal to base_url.
func fold(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// distance is the number of letters to insert, delete, replace, or swap with
// their neighbour, that turn a into b (optimal string alignment).
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
