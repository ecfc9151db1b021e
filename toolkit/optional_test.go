package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type change struct {
	ID    int              `json:"id" min:"1"`
	Title Optional[string] `json:"title,omitzero" min:"1" max:"20"`
	Due   Optional[string] `json:"due,omitzero" format:"date"`
	Tags  Optional[[]tag]  `json:"tags,omitzero" max:"2"`
	Votes Optional[int]    `json:"votes,omitzero" nullable:"false"`
}

type tag struct {
	Name string `json:"name" enum:"red,blue"`
}

func TestOptional(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "update_ticket", Description: "x", Hints: reading, Examples: []Example{{"x", `{"id":1,"title":null}`}}},
		func(_ context.Context, c change) (change, error) {
			title, votes := "before", 5
			c.Title.Apply(&title)
			c.Votes.Apply(&votes)
			return c, Refuse("title=%q votes=%d tags=%v due=%v", title, votes, c.Tags.Present, c.Due.Null)
		})
	session := dial(t, s, legacy, nil)
	for arguments, want := range map[string]string{
		`{"id":1}`:                                  `title="before" votes=5 tags=false due=false`,
		`{"id":1,"title":null,"votes":0}`:           `title="" votes=0 tags=false due=false`,
		`{"id":1,"title":"x","tags":[],"due":null}`: `title="x" votes=5 tags=true due=true`,
		`{"id":1,"votes":null}`:                     "Invalid arguments for update_ticket: votes: expected integer, got null; leave the property out instead.",
		`{"id":1,"title":"","due":"soon","tags":[{"name":"green"}]}`: `Invalid arguments for update_ticket: due: expected a date such as 2024-01-15, got "soon"; tags.0.name: expected one of 'red', 'blue', got "green"; title: expected at least 1 characters, got "".`,
	} {
		if got := call(t, session, "update_ticket", arguments); got.text != want {
			t.Errorf("%s:\n got %s\nwant %s", arguments, got.text, want)
		}
	}
	schema, err := InputSchema[change]()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","properties":{"id":{"type":"integer","minimum":1},"title":{"type":["string","null"],"minLength":1,"maxLength":20},` +
		`"due":{"type":["string","null"],"format":"date"},"tags":{"type":["array","null"],"maxItems":2,"items":{"type":"object","properties":{"name":{"type":"string","enum":["red","blue"]}},"required":["name"],"additionalProperties":false}},` +
		`"votes":{"type":"integer"}},"required":["id"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(schema)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for value, want := range map[string]change{
		`{"id":1}`:                         {ID: 1},
		`{"id":1,"title":null,"votes":3}`:  {ID: 1, Title: Optional[string]{Present: true, Null: true}, Votes: Some(3)},
		`{"id":1,"title":"","tags":[]}`:    {ID: 1, Title: Some(""), Tags: Some([]tag{})},
		`{"id":1,"tags":[{"name":"red"}]}`: {ID: 1, Tags: Some([]tag{{"red"}})},
	} {
		var got change
		if err := json.Unmarshal([]byte(value), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", value, diff)
		}
		if back, err := json.Marshal(got); err != nil || string(back) != value {
			t.Errorf("%s came back as %s, %v", value, back, err)
		}
	}
	if v, ok := Some(0).Get(); v != 0 || !ok {
		t.Error("Get of zero")
	}
	if _, ok := (Optional[int]{Present: true, Null: true}).Get(); ok {
		t.Error("Get of null")
	}
	if _, err := InputSchema[struct{ A []Optional[int] }](); err == nil || !strings.Contains(err.Error(), "Optional is for fields") {
		t.Errorf("in a list: %v", err)
	}
}

// TestAllWrongFieldsAtOnce wants one round to tell everything: what the schema
// says, formats, what the Go type cannot hold, and what a type reads itself.
func TestAllWrongFieldsAtOnce(t *testing.T) {
	type mail struct {
		To    []string   `json:"to" format:"email"`
		From  string     `json:"from" format:"email"`
		Day   string     `json:"day" format:"date" max:"10"`
		At    time.Time  `json:"at"`
		Via   netip.Addr `json:"via"`
		Size  int64      `json:"size"`
		Huge  uint64     `json:"huge"`
		Count int        `json:"count" max:"5"`
		Kind  string     `json:"kind" enum:"a,b"`
		Blob  []byte     `json:"blob"`
		Rate  float32    `json:"rate"`
	}
	s := newServer(t, Options{})
	Add(s, Tool{Name: "send_mail", Description: "x", Hints: reading, Examples: []Example{{"x",
		`{"to":["a@b.example"],"from":"a@b.example","day":"2026-01-02","at":"2026-01-02T03:04:05Z","via":"1.2.3.4","size":1,"huge":18446744073709551615,"count":1,"kind":"a","blob":"aGk=","rate":1}`}}},
		func(context.Context, mail) (Text, error) { return "sent", nil })
	session := dial(t, s, legacy, nil)
	got := call(t, session, "send_mail", `{"to":["x","a@b.example","y"],"from":"z","day":"tomorrow!!!","at":"noon","via":"here","size":9223372036854775808,"huge":1e40,"count":6,"kind":"c","blob":"hi!","rate":1e300,"more":1}`)
	for _, want := range []string{
		"to.0: expected an email address", "to.2: expected an email address", "from: expected an email address", "day: expected ",
		"at: expected a date and time such as", "via: expected Addr: ParseAddr", "size: expected an integer that int64 can hold", "huge: expected an integer that uint64 can hold",
		"count: expected a number of at most 5", "kind: expected one of", "unknown property 'more'",
		"blob: expected bytes in base64", "rate: expected a number that float32 can hold",
	} {
		if !strings.Contains(got.text, want) {
			t.Errorf("%q is not in %s", want, got.text)
		}
	}
	if strings.Count(got.text, "day:") != 1 || strings.Count(got.text, "from:") != 1 {
		t.Errorf("a field is told twice: %s", got.text)
	}
}

func TestSeveralInvalid(t *testing.T) {
	s := newServer(t, Options{})
	Add(s, Tool{Name: "count_days", Description: "x", Hints: reading}, func(context.Context, struct{}) (Text, error) {
		return "", errors.Join(Invalid("to", "expected a time after from."), nil, Invalid("", "give from or since, not both."))
	})
	Add(s, Tool{Name: "count_none", Description: "x", Hints: reading}, func(context.Context, struct{}) (Text, error) {
		return "", errors.Join(NotFound("There is no such day."), errors.New("secret-7"))
	})
	session := dial(t, s, legacy, nil)
	if got, want := call(t, session, "count_days", `{}`), "Invalid arguments for count_days: to: expected a time after from; give from or since, not both."; got.text != want {
		t.Errorf("got %s, want %s", got.text, want)
	}
	if got := call(t, session, "count_none", `{}`); got.text != "There is no such day." {
		t.Errorf("got %s", got.text)
	}
}

func TestCheck(t *testing.T) {
	if err := Check(change{ID: 1, Due: Some("2026-01-02")}); err != nil {
		t.Error(err)
	}
	err := Check(change{Title: Some(""), Due: Some("soon")})
	if want := "due: expected a date such as 2024-01-15, got \"soon\"; id: expected a number of at least 1, got 0; title: expected at least 1 characters, got \"\"."; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if refusal, ok := errors.AsType[*Refusal](err); !ok || refusal.Code != "invalid_arguments" {
		t.Errorf("%T", err)
	}
	if err := Check(part{Name: "x", Grade: "a", Parts: nil}); err != nil {
		t.Error(err)
	}
	type list struct {
		Names []string `json:"names"`
	}
	if err := Check(list{}); err != nil {
		t.Errorf("a nil list is an empty one: %v", err)
	}
	type patch struct {
		Gift  *bool            `json:"gift"`
		Part  *list            `json:"part"`
		Names []string         `json:"names" min:"1" default:"[\"a\"]"`
		Note  *string          `json:"note" nullable:"true"`
		Until Optional[string] `json:"until" nullable:"false"`
	}
	if err := Check(patch{}); err != nil {
		t.Errorf("what was left out of arguments: %v", err)
	}
	if err := Check(patch{Part: &list{}, Names: []string{}}); err == nil || err.Error() != "names: expected at least 1 items, got []." {
		t.Errorf("an empty list: %v", err)
	}
	if err := Check(struct{ C chan int }{}); err == nil {
		t.Error("a type without schema: no error")
	}
}
