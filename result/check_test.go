package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// wants is a check for objects that need all the given members, and a title of
// exactly 300 characters if there is one.
func wants(names ...string) func(*dragoman.Tool, json.RawMessage) error {
	return func(_ *dragoman.Tool, structured json.RawMessage) error {
		var o map[string]json.RawMessage
		if err := json.Unmarshal(structured, &o); err != nil {
			return err
		}
		for _, name := range names {
			if o[name] == nil {
				return fmt.Errorf("no %s", name)
			}
		}
		if title, ok := o["title"]; ok && len(title) != 302 {
			return errors.New("the title has another length")
		}
		return nil
	}
}

func TestCutStaysValid(t *testing.T) {
	var many, names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("member%d", i))
		many = append(many, fmt.Sprintf(`"member%d":[%s1]`, i, strings.Repeat("1,", 400)))
	}
	for _, tt := range []struct {
		name, structured string
		check            func(*dragoman.Tool, json.RawMessage) error
		limit            int
		valid            bool
	}{
		{"a list needs nothing", `{"items":[` + strings.Repeat("1,", 2000) + `1]}`, wants("items"), 1000, true},
		{"all members are needed", "{" + strings.Join(many, ",") + "}", wants(names...), 7500, true},
		{"more than fit are needed", "{" + strings.Join(many, ",") + "}", wants(names...), 1000, false},
		{"a string must stay whole", `{"items":[` + strings.Repeat(`"yyyyyyyyyyyyyyyyyyyy",`, 200) + `1],"title":"` + strings.Repeat("t", 300) + `"}`, wants("items", "title"), 1000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shape := &Shape{Limit: tt.limit, Check: tt.check, Shelf: &Shelf{}}
			m := shape.Message(call, dragoman.Result{Content: []byte(`{"content":[],"structuredContent":` + tt.structured + `}`)})
			if !m.Cut || m.Mismatch != nil {
				t.Fatalf("cut %v, mismatch %v", m.Cut, m.Mismatch)
			}
			var message struct{ Data json.RawMessage }
			decode(t, m.Text, &message)
			err := tt.check(nil, message.Data)
			said := strings.Contains(m.Text, `"fits_output_schema":false`)
			if (err == nil) != tt.valid || said == tt.valid {
				t.Errorf("valid: %v, said to be invalid: %v, want valid %v: %s", err, said, tt.valid, m.Text)
			}
		})
	}
}

func TestMismatchIsFlagged(t *testing.T) {
	for _, tt := range []struct {
		result  string
		flagged bool
	}{
		{`{"content":[],"structuredContent":{"a":1}}`, true},
		{`{"content":[],"structuredContent":{"city":1}}`, false},
		{`{"content":[],"structuredContent":{"a":1},"isError":true}`, false},
		{`{"content":[{"type":"text","text":"{\"a\":1}"}]}`, false},
	} {
		for _, profile := range []Profile{Envelope, Structured, Raw} {
			shape := &Shape{Profile: profile, Check: wants("city")}
			m := shape.Message(call, dragoman.Result{Content: json.RawMessage(tt.result)})
			if (m.Mismatch != nil) != tt.flagged {
				t.Errorf("%s as %s: mismatch %v", tt.result, profile, m.Mismatch)
			}
			if profile != Raw && strings.Contains(m.Text, "output schema") != tt.flagged {
				t.Errorf("%s as %s: %s", tt.result, profile, m.Text)
			}
		}
	}
}

func TestProfileFor(t *testing.T) {
	for model, want := range map[string]Profile{
		"gpt-5.2": Envelope, "qwen2.5-72b-instruct": Text, "Qwen/Qwen2.5-7B": Text, "qwen3-max": Envelope, "": Envelope, "llama2:13b": Text,
	} {
		if got := ProfileFor(model); got != want {
			t.Errorf("%q: %s, want %s", model, got, want)
		}
	}
	if _, err := ParseProfile("envelop"); err == nil {
		t.Error("a misspelt profile was accepted")
	}
}
