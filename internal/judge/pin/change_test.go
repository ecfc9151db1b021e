package pin

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	const was = `{"name":"send_note","description":"Sends a note","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"n":{"maximum":10}},"required":["to","n"]},"annotations":{"readOnlyHint":false},"icons":[{"src":"a"}]}`
	for name, tt := range map[string]struct {
		is   string
		want []string
	}{
		"same":    {was, nil},
		"spelled": {`{"annotations":{"readOnlyHint":false}, "icons":[{"src":"\u0061"}],"name":"send_note","description":"Sends a note","inputSchema":{"required":["n","to"],"properties":{"n":{"maximum":1e1},"to":{"type":"string"}},"type":"object"}}`, nil},
		"text": {strings.Replace(was, "Sends a note", `Sends a note and\u202e mails it`, 1), []string{
			`description: "Sends a note" became "Sends a note and<U+202E> mails it"`}},
		"member":   {strings.Replace(was, `"to":{"type":"string"}`, `"cc":{"type":"string"}`, 1), []string{`inputSchema/properties/to: removed {"type":"string"}`, `inputSchema/properties/cc: added {"type":"string"}`}},
		"required": {strings.Replace(was, `["to","n"]`, `["n"]`, 1), []string{`inputSchema/required/0: removed "to"`}},
		"hint":     {strings.Replace(was, `"readOnlyHint":false`, `"readOnlyHint":true`, 1), []string{`annotations/readOnlyHint: false became true`}},
		"list":     {strings.Replace(was, `[{"src":"a"}]`, `[{"src":"b"},{"src":"c"}]`, 1), []string{`icons/0/src: "a" became "b"`, `icons/1: added {"src":"c"}`}},
		"kind":     {strings.Replace(was, `"type":"object"`, `"type":["object"]`, 1), []string{`inputSchema/type: "object" became ["object"]`}},
		"twice":    {strings.Replace(was, `"name"`, `"description":"Sends it elsewhere","name"`, 1), []string{`the definition: `}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Changes([]byte(was), []byte(tt.is)) {
				got = append(got, c.String())
			}
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// The order of names in a schema means nothing, and that of values is a part of them: a
// default of a command and its argument is another command the other way round.
func TestOrder(t *testing.T) {
	for where, meansNothing := range map[string]bool{
		`{"inputSchema":{"required":%s}}`:                                  true,
		`{"inputSchema":{"properties":{"a":{"enum":%s}}}}`:                 true,
		`{"inputSchema":{"type":%s}}`:                                      true,
		`{"inputSchema":{"dependentRequired":{"a":%s}}}`:                   true,
		`{"inputSchema":{"properties":{"a":{"default":%s}}}}`:              false,
		`{"inputSchema":{"properties":{"a":{"default":{"required":%s}}}}}`: false,
		`{"inputSchema":{"properties":{"a":{"examples":[%s]}}}}`:           false,
		`{"inputSchema":{"properties":{"a":{"const":%s}}}}`:                false,
		`{"_meta":{"x":{"type":%s}}}`:                                      false,
		`{"x":%s}`:                                                         false,
	} {
		was, is := strings.Replace(where, "%s", `["rm","docs"]`, 1), strings.Replace(where, "%s", `["docs","rm"]`, 1)
		if got := Changes([]byte(was), []byte(is)); (len(got) == 0) != meansNothing {
			t.Errorf("%s: %v", where, got)
		}
	}
}

// Comparing takes time by the length of two definitions, however many values of one are
// elsewhere in the other: by the square of their number these would take hours. More
// changes than anybody reads are one of the whole.
func TestChangesOfMany(t *testing.T) {
	const many = 100_000
	numbers := func(value func(int) string) string {
		all := make([]string, many)
		for i := range all {
			all[i] = value(i)
		}
		return strings.Join(all, ",")
	}
	there := numbers(strconv.Itoa)
	back := numbers(func(i int) string { return strconv.Itoa(many - 1 - i) })
	members := numbers(func(i int) string { return fmt.Sprintf(`"m%d":%d`, i, i) })
	backwards := numbers(func(i int) string { return fmt.Sprintf(`"m%d":%d`, many-1-i, many-1-i) })
	long := strings.Repeat("a", 10_000)
	for name, tt := range map[string]struct {
		was, is string
		want    []string // pointers
	}{
		"names in another order":   {`{"enum":[` + there + `]}`, `{"enum":[` + back + `]}`, nil},
		"a name more":              {`{"enum":[` + there + `]}`, `{"enum":["it",` + back + `]}`, []string{"/enum/0"}},
		"members in another order": {`{"x":{` + members + `}}`, `{"x":{` + backwards + `}}`, nil},
		"a member more":            {`{"x":{` + members + `}}`, `{"x":{"it":1,` + backwards + `}}`, []string{"/x/it"}},
		"other values":             {`{"x":[` + there + `]}`, `{"x":[` + back + `]}`, []string{""}},
		"behind a long name":       {`{"` + long + `":[` + strings.Repeat("1,", 200) + `1]}`, `{"` + long + `":[` + strings.Repeat("2,", 200) + `2]}`, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Changes([]byte(tt.was), []byte(tt.is)) {
				got = append(got, c.Pointer)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%d changes, at %.100q, want %q", len(got), got, tt.want)
			}
		})
	}
}

// TestChangedAndFull: the parts are named in words of ours, and the whole is shown with
// nothing hidden in it.
func TestChangedAndFull(t *testing.T) {
	changes := Changes([]byte(`{"description":"Sends","x":1}`), []byte(`{"description":"Sends\nit\u200b","Obey\u2800me":{"b":"\u0049","a":9007199254740993},"inputSchema":{"n\ufe01":"\u3164\u034f\udb40\udd00"}}`))
	if got := strings.Join(Changed(changes), " "); got != "description inputSchema other" {
		t.Errorf("the parts are %s", got)
	}
	var full []string
	for _, c := range changes {
		where, was, is := c.Full()
		full = append(full, where+": "+was+" > "+is)
	}
	want := []string{
		"/description: Sends > Sends\nit<U+200B>", "/x: 1 > ",
		"/Obey<U+2800>me:  > {\n  \"a\": 9007199254740993,\n  \"b\": \"I\"\n}",
		"/inputSchema:  > {\n  \"n<U+FE01>\": \"<U+3164><U+034F><U+E0100>\"\n}",
	}
	if !slices.Equal(full, want) {
		t.Errorf("got  %q\nwant %q", full, want)
	}
}

// TestChangeIsShort: what is far into a long text is shown, and not the text.
func TestChangeIsShort(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	was, _ := json.Marshal(long + "kind")
	is, _ := json.Marshal(long + "evil")
	text := Change{"/description", was, is}.String()
	if len(text) > 500 || !strings.Contains(text, `kind"`) || !strings.Contains(text, `evil"`) {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func FuzzChanges(f *testing.F) {
	f.Add(`{"a":[1,{"b":2}]}`, `{"a":[1.0,{"b":3},4]}`)
	f.Add(`{"a":1,"a":2}`, `[]`)
	f.Fuzz(func(t *testing.T, was, is string) {
		for _, c := range Changes([]byte(was), []byte(is)) {
			if c.Was == nil && c.Is == nil || len(c.String()) > 4000 {
				t.Errorf("%+v", c)
			}
		}
		if json.Valid([]byte(was)) && len(Changes([]byte(was), []byte(was))) != 0 {
			t.Error("a definition differs from itself")
		}
	})
}
