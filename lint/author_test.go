package lint

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestAuthor: where the author says what names are to be, rules hold to the
// letter and say so in words for whoever writes the tool.
func TestAuthor(t *testing.T) {
	rules := Only("N002", "N003", "N005", "N010", "N011", "N012", "A003", "A009", "D001", "S022")
	for name, tt := range map[string]struct {
		author Author
		server string
		patch  string
		want   []string // rule and message
	}{
		"right":           {Author{Service: "notes"}, "notes-mcp-server", `{}`, nil},
		"verb of its own": {Author{Service: "notes", Verbs: []string{"frobnicate"}}, "", `{"name":"notes_frobnicate_note"}`, nil},
		"other server": {Author{Service: "notes"}, "memo-mcp-server", `{}`, []string{
			`N010 server name "memo-mcp-server": a server of "notes" is called "notes-mcp-server"`}},
		"version": {Author{}, "notes-v2-mcp-server", `{"name":"get_note"}`, []string{
			`N011 server name "notes-v2-mcp-server": leave out versions and dates, a name lasts longer`}},
		"style": {Author{Service: "notes"}, "", `{"name":"NotesGet"}`, []string{
			`N003 names are lower-case words joined by _, such as "github_create_issue"`}},
		"prefix": {Author{Service: "notes"}, "", `{"name":"get_note"}`, []string{
			`N012 names of this server begin with the service: notes_{action}_{resource}`}},
		"verb": {Author{Service: "notes"}, "", `{"name":"notes_frobnicate_note"}`, []string{
			`N005 "frobnicate" is not a known verb; names are notes_{action}_{resource}`}},
		"resource": {Author{}, "", `{"name":"get"}`, []string{
			`N005 the name does not say what is acted on; names are {action}_{resource}`}},
		"hints": {Author{Service: "notes"}, "", `{"annotations":{"openWorldHint":null,"destructiveHint":null}}`, []string{
			`A009 hints not stated: destructiveHint, openWorldHint`}},
		"both": {Author{Service: "notes"}, "", `{"annotations":{"destructiveHint":true}}`, []string{
			`A003 a tool that changes nothing cannot be destructive, and both hints are true`}},
		"default": {Author{Service: "notes"}, "", `{"inputSchema":{"properties":{"title":{"default":7}}}}`, []string{
			`S022 default 7 breaks its own rules: the value: expected string`}},
		"output": {Author{Service: "notes"}, "", `{"outputSchema":{"properties":{"text":{"examples":[7]}}}}`, []string{
			`S022 example 7 breaks its own rules: the value: expected string`}},
	} {
		t.Run(name, func(t *testing.T) {
			var saved struct{ Tools []json.RawMessage }
			must(t, json.Unmarshal(list(t, []json.RawMessage{json.RawMessage(tt.patch)}), &saved))
			var got []string
			for _, f := range Judge(&Server{Name: tt.server, Author: &tt.author}, saved.Tools, rules) {
				got = append(got, f.Rule+" "+f.Message)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
