package dialect

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-mcp/dragoman"
)

const gradedSchema = `{"type":"object","properties":{
	"paths":{"type":"array","items":{"type":"string"}},"ids":{"type":"array","items":{"type":"integer"}},
	"path":{"type":"string"},"dry_run":{"type":"boolean"},"confirm":{"type":["boolean","string"]},"size":{"type":["string","number"]},
	"options":{"type":"object","properties":{"keepFiles":{"type":"boolean"},"headers":{"type":"object","additionalProperties":{"type":"string"}}}},
	"recursive":{"type":"boolean"},"either":{"anyOf":[{"type":"object","properties":{"max_depth":{"type":"integer"}}},{"type":"string"}]}},
	"required":["path"]}`

// TestGuessesAreRefused holds what a model wrote that can be read in more ways
// than one. None of it may run; the model has to learn what to send.
func TestGuessesAreRefused(t *testing.T) {
	for _, name := range Names() {
		plan := planFor(t, name, gradedSchema)
		for _, tc := range []struct{ raw, code, says string }{
			{`{"path":"x","paths":"[\"a.txt\",\"b.tx"}`, dragoman.CodeInvalidArguments, "/paths: expected array"},
			{`{"path":"x","paths":"[\"a.txt\", \"b.txt"}`, dragoman.CodeInvalidArguments, "not as text"},
			{`{"path":"x","paths":"{\"a\":"}`, dragoman.CodeInvalidArguments, "/paths"},
			{`{"path":"x","paths":"null"}`, dragoman.CodeInvalidArguments, "/paths: expected array"},
			{`{"path":"x","paths":""}`, dragoman.CodeInvalidArguments, "/paths: expected array"},
			{`{"path":"x","paths":"  "}`, dragoman.CodeInvalidArguments, "/paths: expected array"},
			{`{"path":"x","paths":"a, b"}`, dragoman.CodeInvalidArguments, "/paths: expected array"},
			{`{"path":"x","paths":"a\nb"}`, dragoman.CodeInvalidArguments, "/paths: expected array"},
			{`{"path":"x","ids":"1,2"}`, dragoman.CodeInvalidArguments, "/ids: expected array"},
			{`{"path":"C:\Users\new\table.txt"}`, dragoman.CodeInvalidArguments, "backslash"},
			{`{"path":"\d+\n"}`, dragoman.CodeInvalidArguments, "backslash"},
			{`{"path":"\s\u0041"}`, dragoman.CodeInvalidArguments, "backslash"},
			{`{"path":"x","confirm":1}`, dragoman.CodeInvalidArguments, "/confirm: expected boolean or string"},
			{`{"path":"x","confirm":0}`, dragoman.CodeInvalidArguments, "/confirm"},
			{`{"path":"x","size":true}`, dragoman.CodeInvalidArguments, "/size"},
			{`{"path":"x","dry_run":true,"dryRun":false}`, dragoman.CodeInvalidArguments, "dry_run"},
			{`{"path":"x","dryRun":true,"DryRun":false}`, dragoman.CodeInvalidArguments, "dry_run"},
			{`{"path":"x","dry_rum":true}`, dragoman.CodeInvalidArguments, "is 'dry_run' meant?"},
			{`{"path":"x","dry_rum":"true"}`, dragoman.CodeInvalidArguments, "is 'dry_run' meant?"},
			{`{"path":"x","_dry_run":true}`, dragoman.CodeInvalidArguments, "is 'dry_run' meant?"},
			{`{"path":"x","dryRun":"perhaps"}`, dragoman.CodeInvalidArguments, "/dry"},
			{`{"path":"x","recusrive":true}`, dragoman.CodeInvalidArguments, "is 'recursive' meant?"},
			{`{"path":"x","arguments":{"dry_run":true}}`, dragoman.CodeInvalidArguments, "/arguments"},
			{`{"arguments":{"paths":["a"]}}`, dragoman.CodeInvalidArguments, "/path is missing"},
			{`{"path":"x","path":"y"}`, dragoman.CodeInvalidArguments, `"path" is there twice`},
			{`{"path":"x","options":{"keepFiles":true,"keepFiles":false}}`, dragoman.CodeInvalidArguments, `"keepFiles" is there twice`},
			{`{"path":"x","options.keepFiles":true,"options":{"keepFiles":false}}`, dragoman.CodeInvalidArguments, "is '/options/keepFiles' meant?"},
			{`{"path":"x","options.keepFiles":true,"options":7}`, dragoman.CodeInvalidArguments, "is '/options/keepFiles' meant?"},
			{`{"path":"x \ud83d"}`, dragoman.CodeInvalidArguments, "character"},
			{"{\"path\":\"x\xff\"}", dragoman.CodeInvalidArguments, "character"},
		} {
			got, repairs, problem := plan.Decode(tc.raw, "tool_calls")
			if len(repairs) == 1 && repairs[0].Rule == "nullFromString" && sameJSON(t, string(got), `{"path":"x"}`) {
				continue // null was asked for, so this is one
			}
			if problem == nil || problem.Code != tc.code || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("%s: %s ran as %s %v, problem %v, want %q", name, tc.raw, got, repairs, problem, tc.says)
			}
		}
	}
}

// TestOneReading holds slips that can be read in one way.
func TestOneReading(t *testing.T) {
	for _, name := range Names() {
		plan := planFor(t, name, gradedSchema)
		for _, tc := range []struct{ raw, want, rule string }{
			{`{"path":"x","paths":"a b.txt"}`, `{"path":"x","paths":["a b.txt"]}`, "wrapInArray"},
			{`{"path":"x","paths":"[\"a.txt\",\"b\"]"}`, `{"path":"x","paths":["a.txt","b"]}`, "arrayFromString"},
			{`{"path":"C:\dir\Xyz"}`, `{"path":"C:\\dir\\Xyz"}`, "strayBackslash"},
			{`{"path":"C:\\dir\Xyz"}`, `{"path":"C:\\dir\\Xyz"}`, "strayBackslash"},
			{`{"path":"x","confirm":5}`, `{"path":"x","confirm":"5"}`, "stringFromNumber"},
			{`{"path":"x","dryRun":true}`, `{"path":"x","dry_run":true}`, "nearName"},
			{`{"path":"x","DRY-RUN":"true"}`, `{"path":"x","dry_run":true}`, "nearName"},
			{`{"Path":"x"}`, `{"path":"x"}`, "nearName"},
			{`{"path":"x","options":{"keep_files":true}}`, `{"path":"x","options":{"keepFiles":true}}`, "nearName"},
			{`{"path":"x","options":"{\"keep_files\":true}"}`, `{"path":"x","options":{"keepFiles":true}}`, "nearName"},
			{`{"path":"x","options.keepFiles":true}`, `{"path":"x","options":{"keepFiles":true}}`, "pathName"},
			{`{"path":"x","options/keep_files":true}`, `{"path":"x","options":{"keepFiles":true}}`, "pathName"},
			{`{"path":"x","Options[keepFiles]":true}`, `{"path":"x","options":{"keepFiles":true}}`, "pathName"},
			{`{"path":"x","options.keepFiles":true,"options":{}}`, `{"path":"x","options":{"keepFiles":true}}`, "pathName"},
			{`{"path":"x","options_keepFiles":true}`, `{"path":"x","options_keepFiles":true}`, ""}, // may be a name of its own
			{`{"path":"x","note.keepFiles":true}`, `{"path":"x","note.keepFiles":true}`, ""},
			{`{"path":"x","path":"x"}`, `{"path":"x"}`, "duplicateKeys"},
			{`{"path":"x","either":{"maxDepth":2}}`, `{"path":"x","either":{"max_depth":2}}`, "nearName"},
			{`{"arguments":{"path":"x"}}`, `{"path":"x"}`, "envelope"},
			{`{"name":"t","parameters":{"path":"x","dryRun":true}}`, `{"path":"x","dry_run":true}`, "envelope"},
			{`{"path":"x","options":{"headers":{"keep_files":"1"}}}`, `{"path":"x","options":{"headers":{"keep_files":"1"}}}`, ""},
			{`{"path":"x","note":"mine"}`, `{"path":"x","note":"mine"}`, ""},
			{`{"path":"x","paths":["a"],"pathz":["b"]}`, `{"path":"x","paths":["a"],"pathz":["b"]}`, ""},
			{`{"path":"x","dry_run":true,"_dry_run":7}`, `{"path":"x","dry_run":true,"_dry_run":7}`, ""},
			{`{"path":"x","dry_run":true,"dryRun":true}`, `{"path":"x","dry_run":true,"dryRun":true}`, ""},
			{`{"path":"x","size":1,"sizes":[1]}`, `{"path":"x","size":1,"sizes":[1]}`, ""},
			{`{"path":"x","recursives":[1]}`, `{"path":"x","recursives":[1]}`, ""},
		} {
			got, repairs, problem := plan.Decode(tc.raw, "tool_calls")
			used := tc.rule == ""
			for _, r := range repairs {
				used = used || r.Rule == tc.rule
				if r.Grade() != Certain {
					t.Errorf("%s: %s: %v is %v", name, tc.raw, r, r.Grade())
				}
			}
			if problem != nil || !used || !sameJSON(t, string(got), tc.want) {
				t.Errorf("%s: %s ran as %s %v %v, want %s by %s", name, tc.raw, got, repairs, problem, tc.want, tc.rule)
			}
		}
	}
}

// TestNearNamesOfClosedObjects: where the server takes no other member the model
// is told which name is perhaps meant, whatever stands there.
func TestNearNamesOfClosedObjects(t *testing.T) {
	closed := strings.Replace(gradedSchema, `"required":["path"]`, `"required":["path"],"additionalProperties":false`, 1)
	for _, name := range Names() {
		plan := planFor(t, name, closed)
		for raw, says := range map[string]string{
			`{"path":"x","dry_rum":[7]}`:                 "is 'dry_run' meant?",
			`{"path":"x","dry_run":true,"dry_rum":true}`: "dry_rum",
			`{"path":"x","_dry_run":7}`:                  "is 'dry_run' meant?",
			`{"path":"x","note":"mine"}`:                 "note",
		} {
			if got, _, problem := plan.Decode(raw, "tool_calls"); problem == nil || !strings.Contains(problem.Message, says) {
				t.Errorf("%s: %s ran as %s, problem %v, want %q", name, raw, got, problem, says)
			}
		}
	}
}

// TestNullIsNoTwin: where null stands for an absent property, it does not keep a
// misspelled one from its place.
func TestNullIsNoTwin(t *testing.T) {
	plan := planFor(t, "openai-strict", `{"type":"object","properties":{"path":{"type":"string"},"dry_run":{"type":"boolean"}},"required":["path"]}`)
	got, repairs, problem := plan.Decode(`{"path":"x","dry_run":null,"dryRun":true}`, "")
	if !plan.Strict() || problem != nil || !sameJSON(t, string(got), `{"path":"x","dry_run":true}`) || repairs[0].Rule != "nearName" {
		t.Errorf("%s %v %v", got, repairs, problem)
	}
	plan = planFor(t, "openai", `{"type":"object","properties":{"dry_run":{"type":["boolean","null"]}}}`)
	if got, _, problem := plan.Decode(`{"dry_run":null,"dryRun":true}`, ""); problem == nil {
		t.Errorf("ran as %s", got)
	}
}

// TestLikelyRepairs guesses only where the call cannot change anything.
func TestLikelyRepairs(t *testing.T) {
	if GradeOf(&dragoman.Tool{}) != Certain || GradeOf(&dragoman.Tool{Declared: dragoman.ReadOnly}) != Likely {
		t.Error("a tool that may change something gets guesses, or one that does not gets none")
	}
	yes := true
	if GradeOf(&dragoman.Tool{Hints: dragoman.Hints{ReadOnly: &yes}}) != Certain {
		t.Error("a server's own word is believed")
	}
	plan := planFor(t, "openai", gradedSchema)
	for raw, want := range map[string]string{
		`{"path":"x","recusrive":true}`: `{"path":"x","recursive":true}`,
		`{"path":"x \ud83d"}`:           `{"path":"x ` + "\ufffd" + `"}`,
	} {
		got, repairs, problem := plan.DecodeAs(raw, "", Likely)
		if problem != nil || !sameJSON(t, string(got), want) || repairs[0].Grade() != Likely {
			t.Errorf("%s: %s %v %v", raw, got, repairs, problem)
		}
	}
	for _, raw := range []string{`{"path":"x","paths":"a, b"}`, `{"path":"x","confirm":1}`, `{"path":"x","paths":"[\"a"}`, `{"path":"C:\x\new"}`} {
		if got, _, problem := plan.DecodeAs(raw, "", Likely); problem == nil {
			t.Errorf("%s ran as %s", raw, got)
		}
	}
}
