package openapi

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/dragoman-mcp/dragoman/lint"
	"github.com/dragoman-mcp/dragoman/toolkit"
)

// actions are the verbs of methods, for operations whose name has none.
var actions = map[string]string{
	http.MethodGet: "get", http.MethodHead: "check", http.MethodPost: "create", http.MethodPut: "replace",
	http.MethodPatch: "update", http.MethodDelete: "delete", http.MethodOptions: "describe", http.MethodTrace: "trace",
}

// toolName makes a name of the form {service}_{action}_{resource}.
func toolName(s *toolkit.Server, op Operation) string {
	list := words(op.ID)
	if len(list) == 0 {
		list = words(strings.NewReplacer("{", " by ", "}", " ").Replace(op.Path))
	}
	if prefix := words(s.Service()); len(prefix) > 0 && len(list) > len(prefix) && strings.Join(list[:len(prefix)], "_") == s.Service() {
		list = list[len(prefix):]
	}
	if len(list) == 0 || !s.KnowsVerb(list[0]) {
		list = append([]string{actions[op.Method]}, list...)
	}
	if len(list) == 1 {
		list = append(list, "all")
	}
	name := strings.Join(list, "_")
	if s.Service() != "" {
		name = s.Service() + "_" + name
	}
	if len(name) > lint.MaxName {
		name = strings.TrimRight(name[:lint.MaxName], "_")
	}
	return name
}

// words takes a name apart: getUserByID, get-user-by-id and get_user_by_id are
// the same words. What is no letter or digit of ASCII separates.
func words(name string) []string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			b.WriteByte(' ')
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) ||
			unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}
