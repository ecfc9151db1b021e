package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestBombs: S004 means a bomb. What doubles is one, and an enum without values is not.
func TestBombs(t *testing.T) {
	defs := []string{`"d22":{"type":"string"}`}
	for i := range 22 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	doubles := strings.Join(defs, ",")
	for _, tt := range []struct{ name, schema, want string }{
		{"doubling", `{"properties":{"title":{"$ref":"#/$defs/d0"}},"$defs":{` + doubles + `}}`, "S004"},
		{"few of them", `{"properties":{"title":{"$ref":"#/$defs/d15"}},"$defs":{` + doubles[:strings.Index(doubles, `"d0"`)] + strings.Join(defs[16:], ",") + `}}`, ""},
		{"an empty enum", `{"properties":{"title":{"enum":[]}}}`, "S005"},
		{"lengths", `{"properties":{"title":{"minLength":5,"maxLength":2}}}`, "S005"},
		{"numbers of entries", `{"properties":{"title":{"type":"array","items":{"type":"string"},"minItems":5,"maxItems":2}}}`, "S005"},
	} {
		got := slices.DeleteFunc(fired(t, fixture{}, `[{"inputSchema":`+tt.schema+`}]`, true), func(id string) bool { return id != "S004" && id != "S005" && id != "S025" })
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: fires %v, want %s", tt.name, got, tt.want)
		}
	}
}

// TestOneWordIsNoError: A002 wants name and description to agree, and believes a
// description that promises to change nothing.
func TestOneWordIsNoError(t *testing.T) {
	for _, tt := range []struct{ name, description, want string }{
		{"update_note", "Updates the text of one note.", "A002"},
		{"delete_note", "This tool deletes one note.", "A002"},
		{"update_note", "Gets what changed about one note.", "A011"},
		{"post_get", "Gets one post.", ""},
		{"deploy_plan_get", "Creates a plan for a deployment.", "A011"},
		{"post_and_get", "Posts a note, and gets the answer.", "A002"},
		{"post_form", "Gets the form for a post.", "A011"},
		{"note_text", "Deletes one note.", "A011"},
		{"set_theory_lookup", "Looks a set up.", "A011"},
		{"merge_preview", "Merges two branches in memory, without saving anything.", ""},
		{"commit_log", "Read-only: commits of a branch.", ""},
		{"team_apps", "Installed apps of a team.", ""},
		{"list_updates", "Lists the updates of a package.", ""},
	} {
		patch, err := json.Marshal(map[string]any{"name": tt.name, "description": tt.description})
		must(t, err)
		got := slices.DeleteFunc(fired(t, fixture{}, `[`+string(patch)+`]`, true), func(id string) bool { return id != "A002" && id != "A011" })
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s (%s): fires %v, want %s", tt.name, tt.description, got, tt.want)
		}
	}
}

// TestDoubt: D009 asks for an example where a value has to be guessed, and not because
// there are many arguments.
func TestDoubt(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{"an id, a number, an enum", `{"user_id":{"type":"string"},"limit":{"type":"integer"},"state":{"type":"string","enum":["a","b"]}}`, ""},
		{"a pattern, a format, a default", `{"a":{"type":"string","pattern":"^x"},"b":{"type":"string","format":"date"},"c":{"type":"string","default":"d"}}`, ""},
		{"said in the description", `{"sort":{"type":"string","description":"Field and direction, such as name:asc"},"range":{"type":"string","description":"In the format A1:B2"}}`, ""},
		{"a text of its own form", `{"user_id":{"type":"string"},"range":{"type":"string","description":"The range"}}`, "range"},
		{"an object of which nothing is said", `{"settings":{"type":"object","description":"The settings"}}`, "settings"},
		{"deeper", `{"page":{"type":"object","properties":{"filter":{"type":"string"}}}}`, "filter"},
	} {
		tool := readTool(&Server{}, 0, json.RawMessage(`{"name":"a","inputSchema":{"type":"object","properties":`+tt.schema+`}}`))
		if got := doubt(tool); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestLittleUse: what follows from another finding, or is said elsewhere, is not said
// again.
func TestLittleUse(t *testing.T) {
	for patch, silent := range map[string]string{
		// Each member of the argument is described.
		`{"inputSchema":{"properties":{"title":{"type":"array","description":null,"items":{"type":"object","properties":{"a":{"type":"string","description":"Part, such as x"}}}}}}}`: "S006",
		// No schema was sent at all.
		`{"name":"notes_list_tags","description":"Lists all tags. Returns names.","inputSchema":{"type":null,"properties":null,"required":null,"additionalProperties":null}}`: "O005",
		// A verb.
		`{"name":"notes_explore_tags"}`:  "N005",
		`{"name":"notes_tags_diagnose"}`: "N005",
		`{"name":"notes_aggregate"}`:     "N005",
		// The first sentence stands below a heading.
		`{"description":"<Purpose>\nGets one note by its name. Returns its text.\n</Purpose>"}`: "D004",
		`{"description":"## Purpose\n\nGets one note by its name. Returns its text."}`:          "D004",
		`{"description":"**Reading notes**\nGets one note by its name. Returns its text."}`:     "D004",
		// What replaces or takes away destroys.
		`{"name":"notes_clean","description":"Cleans the folder of drafts. Returns their number.","annotations":{"readOnlyHint":false,"destructiveHint":true}}`:                       "D006",
		`{"name":"notes_upgrade","description":"Upgrades the notes to the newest form. Returns their number.","annotations":{"readOnlyHint":false,"destructiveHint":true}}`:           "D006",
		`{"inputSchema":{"properties":{"command":{"type":"string","description":"Command of the tool, such as list"},"parameters":{"type":"object","description":"What it takes"}}}}`: "S017",
	} {
		if got := fired(t, fixture{}, "["+patch+"]", true); slices.Contains(got, silent) {
			t.Errorf("%s: fires %v", patch, got)
		}
	}
}

// TestCommands: S017 means what is run. A command whose parameters stand in an object
// beside it is one of the server's own.
func TestCommands(t *testing.T) {
	const command = `{"type":"string","description":"Command to execute"}`
	for properties, want := range map[string]bool{
		`{"command":` + command + `}`: true,
		`{"command":` + command + `,"args":{"type":"array","items":{"type":"string"}}}`: true,
		`{"command":` + command + `,"env":{"type":"object"}}`:                           true,
		`{"command":` + command + `,"parameters":{"type":"string"}}`:                    true,
		`{"shell":` + command + `,"parameters":{"type":"object"}}`:                      true,
		`{"sql":` + command + `,"params":{"type":"object"}}`:                            true,
		`{"command":` + command + `,"parameters":{"type":"object"}}`:                    false,
		`{"command":` + command + `,"args":{"type":"object"}}`:                          false,
	} {
		got := fired(t, fixture{}, `[{"inputSchema":{"properties":`+properties+`}}]`, true)
		if slices.Contains(got, "S017") != want {
			t.Errorf("%s: fires %v", properties, got)
		}
	}
}
