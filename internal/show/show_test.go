package show

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pin"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
)

// tags is a Paint whose styles can be read.
type tags struct{}

func (tags) Bold(text string) string  { return "<b>" + text + "</b>" }
func (tags) Faint(text string) string { return "<i>" + text + "</i>" }
func (tags) Good(text string) string  { return "<good>" + text + "</good>" }
func (tags) Bad(text string) string   { return "<bad>" + text + "</bad>" }
func (tags) Warn(text string) string  { return "<warn>" + text + "</warn>" }

// hidden are characters that must be in nothing that is shown.
const hidden = "\x1b\u200b\u202e"

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local)

func entry(name string, state pinning.State, definition, reason string) pinning.Pin {
	return pinning.Pin{
		Server: "notes", Key: pin.Key{Kind: pin.Tool, Name: name}, State: state, At: noon, Reason: reason,
		Definition: json.RawMessage(definition), Pin: pin.Digest{0xab, 0xcd},
	}
}

// TestChangedDefinition: all that is different stands in the tree and in the text, in
// lines, and no character of it hides.
func TestChangedDefinition(t *testing.T) {
	pins := []pinning.Pin{
		entry("add", pinning.Standing, `{"name":"add","description":"Adds.","title":"Add"}`, pinning.ByFirst),
		entry("add", pinning.Waiting, `{"name":"add","description":"Adds.\nAnd\u200b more\u001b[2J","icons":[]}`, "changed"),
		entry("list", pinning.Standing, `{"name":"list"}`, pinning.ByPerson),
		entry("old", pinning.Passed, `{"name":"old"}`, "changed"),
	}
	pins[2].By = "terminal:ada"
	servers := Pins(pins)
	if len(servers) != 1 || servers[0].Waiting != 1 || servers[0].Passed != 1 || servers[0].Approved != "2 tools" {
		t.Fatalf("%+v", servers)
	}
	d := servers[0].Definitions[1]
	if len(d.Changes) != 3 || d.Before == nil || d.Before.How != "on first use" {
		t.Fatalf("%+v", d)
	}
	if c := d.Changes[0]; c.Where != "/description" || *c.Was != "Adds." || *c.Is != "Adds.\nAnd<U+200B> more<U+001B>[2J" {
		t.Errorf("%+v", c)
	}
	if c := d.Changes[2]; c.Where != "/icons" || c.Was != nil || *c.Is != "[]" {
		t.Errorf("%+v", c)
	}
	const want = "<b>notes</b>: 2 tools approved, <bad>1 waiting</bad>, 1 held before\n" +
		"  add  <i>abcd00000000</i>  2026-11-22 12:00:00 on first use\n" +
		"  <b>notes/add</b>  Its server changed this tool since it was approved.\n" +
		"    approved  2026-11-22 12:00:00 on first use\n" +
		"    seen      2026-11-22 12:00:00  pin abcd00000000\n" +
		"    /description\n" +
		"<bad>      - Adds.</bad>\n" +
		"<good>      + Adds.\n      + And<U+200B> more<U+001B>[2J</good>\n" +
		"    /title\n<bad>      - Add</bad>\n" +
		"    /icons\n<good>      + []</good>\n" +
		"  list  <i>abcd00000000</i>  2026-11-22 12:00:00 by terminal:ada\n" +
		"  old  <i>abcd00000000</i>  2026-11-22 12:00:00 seen like this, and held; no longer so\n"
	if got := servers[0].Text(tags{}, true); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := servers[0].Text(tags{}, false); strings.Contains(got, "list") || !strings.Contains(got, "/icons") {
		t.Errorf("without all:\n%s", got)
	}
	if document, err := json.Marshal(servers); err != nil || strings.ContainsAny(string(document), hidden) {
		t.Errorf("%s, %v", document, err)
	}
}

// TestNewDefinition: of one that nobody approved before, everything is a difference.
func TestNewDefinition(t *testing.T) {
	p := entry("add", pinning.Waiting, `{"name":"add"}`, "")
	d := DefinitionOf(&p, nil)
	if d.Before != nil || len(d.Changes) != 1 || d.Changes[0].Where != "/name" || d.Why == "" || d.How != "" {
		t.Errorf("%+v", d)
	}
}

// TestApprovalIsWhole: the arguments are shown to the last byte, what hides in them is
// escaped, and what others wrote keeps to its line.
func TestApprovalIsWhole(t *testing.T) {
	long := strings.Repeat("x", 5000)
	a := approval.Approval{
		ID: "7kq2", State: approval.Pending, Asked: noon, Expires: noon.Add(time.Hour),
		Key:       approval.Key{Caller: "key-1", Server: "files", Tool: "write\x1b"},
		Details:   approval.Details{CallerName: "Ada\nrule: none", Effect: "may change", Title: "W\u202er"},
		Arguments: json.RawMessage(`{"path":"a\u200bb","text":"` + long + "\u200b" + `"}`),
		Rule:      "ask[0]", By: "terminal:ada", Why: "fine",
	}
	shown := ApprovalOf(&a)
	text := shown.Text(tags{})
	const head = "<b>7kq2</b>  <b>files / write<U+001B></b>  asked 2026-11-22 12:00:00\n" +
		"  caller     key-1 (Ada rule: none)\n  may        may change\n  rule       ask[0]\n  title      W<U+202E>r\n" +
		"  arguments  {\n               \"path\": \"a\\u200bb\",\n"
	if !strings.HasPrefix(text, head) || !strings.Contains(text, long+`\u200b`) || strings.ContainsAny(text, hidden) || !strings.HasSuffix(text, "  answered   terminal:ada: fine\n") {
		t.Errorf("got\n%s", text)
	}
	var was, is map[string]string
	if json.Unmarshal(a.Arguments, &was) != nil || json.Unmarshal([]byte(shown.Arguments), &is) != nil || was["text"] != is["text"] || was["path"] != is["path"] {
		t.Error("the arguments that are shown are not those of the call")
	}
	for state, want := range map[approval.State]string{
		approval.Pending: "pending until 13:00:00", approval.Approved: "<good>approved</good>: the call may run once, until 13:00:00",
		approval.Denied: "<bad>denied</bad>", approval.Expired: "expired",
	} {
		if shown.State = state; shown.Verdict(tags{}) != want {
			t.Errorf("%s: %s", state, shown.Verdict(tags{}))
		}
	}
}

// TestRecordLine: what a record of each kind says.
func TestRecordLine(t *testing.T) {
	for _, c := range []struct {
		record audit.Record
		want   string
	}{
		{audit.Record{Kind: audit.Decision, Caller: "k1", CallerName: "Ada", Server: "files", Target: "write\u200b", Verdict: audit.Deny, Rule: "deny[0]", Call: "c1"},
			`decision  k1 (Ada)  files / write\u{200b}  <bad>deny</bad>  by deny[0]  c1`},
		{audit.Record{Kind: audit.Intent, Method: "prompts/get", Server: "files", Target: "p", Verdict: audit.Allow, Approval: "a1"},
			"intent    -  prompts/get files / p  allow  approval a1"},
		{audit.Record{Kind: audit.Outcome, Server: "files", Target: "read", Microseconds: 1500, Failed: true, Code: "timeout"},
			"outcome   -  files / read  ran: maybe  1.5ms  failed  timeout"},
		{audit.Record{Kind: audit.Approval, Approval: "a1", State: "denied", By: "t", ByName: "Eve", Why: "no"},
			"approval  -  -  a1 denied  by t (Eve)  no"},
		{audit.Record{Kind: audit.Pin, Server: "files", Target: "read", State: "approved", By: "t"},
			"pin       -  files / read  approved  by t"},
		{audit.Record{Kind: audit.Login, By: "t", State: "began"}, "login     -  -  began"},
		{audit.Record{Kind: audit.Pruned, Count: 3}, "pruned    -  -  3 older records were removed"},
		{audit.Record{Kind: audit.Gap, Count: 2}, "gap       -  -  records that could not be written, and are missing: 2"},
	} {
		c.record.Seq, c.record.Time = 7, noon
		shown := RecordOf(&c.record)
		if got, want := shown.Line(tags{}), "<i>     7</i>  2026-11-22 12:00:00  "+c.want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if shown.Call != c.record.Call || shown.Approval != c.record.Approval {
			t.Errorf("%+v does not lead to its call and approval", shown)
		}
	}
}
