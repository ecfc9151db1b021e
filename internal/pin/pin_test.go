package pin

import (
	"slices"
	"testing"
)

const definition = `{"name":"get_note","description":"Gets a note","inputSchema":{"type":"object","properties":{"a":{"const":12345678901234567890}}},"annotations":{"readOnlyHint":true},"new":1}`

func TestOf(t *testing.T) {
	pin := Of("notes", "get_note", []byte(definition))
	for name, other := range map[string]Digest{
		"server":     Of("note", "get_note", []byte(definition)),
		"name":       Of("notes", "get_notes", []byte(definition)),
		"definition": Of("notes", "get_note", []byte(definition+" ")),
		"border":     Of("notesget", "_note", []byte(definition)),
	} {
		if other == pin {
			t.Errorf("the pin does not depend on the %s", name)
		}
	}
	var back Digest
	if err := back.UnmarshalText([]byte(pin.String())); err != nil || back != pin {
		t.Errorf("read back %v, %v", back, err)
	}
	if err := back.UnmarshalText([]byte("abc")); err == nil {
		t.Error("half a digest was read")
	}
}

func TestLock(t *testing.T) {
	var l Lock
	l.Set("notes", []Seen{
		{"get_note", []byte(definition)},
		{"add_note", []byte(`{"name":"add_note","description":"Adds"}`)},
		{"same", []byte(`{"name":"same","annotations":{"readOnlyHint":true,"openWorldHint":false}}`)},
	})
	again, err := ParseLock(l.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := again.Compare("notes", []Seen{
		{"get_note", []byte(definition)},
		{"add_note", []byte(`{"name":"add_note","description":"Adds"}`)},
		{"same", []byte(`{"name":"same","annotations":{"readOnlyHint":true,"openWorldHint":false}}`)},
	}); !ok || got != nil {
		t.Errorf("the same tools differ: %+v, %v", got, ok)
	}
	got, _ := again.Compare("notes", []Seen{
		{"get_note", []byte(`{"name":"get_note","description":"Gets a note and mails it","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)},
		{"same", []byte(`{"name":"same", "annotations":{"openWorldHint":false,"readOnlyHint":true}}`)},
		{"del_note", []byte(`{"name":"del_note"}`)},
	})
	want := []Difference{
		{Tool: "add_note", Removed: true},
		{Tool: "del_note", Added: true},
		{Tool: "get_note", Parts: []string{"description", "inputSchema", "other"}},
		{Tool: "same"},
	}
	if !slices.EqualFunc(got, want, func(a, b Difference) bool {
		return a.Tool == b.Tool && a.Added == b.Added && a.Removed == b.Removed && slices.Equal(a.Parts, b.Parts)
	}) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if _, ok := again.Compare("others", nil); ok {
		t.Error("a server that is not pinned compares")
	}
}

func TestParseLockRefuses(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"version":2,"servers":{}}`, `{"version":1,"servers":{},"x":1}`, `{"version":1,"servers":{}} {}`,
		`{"version":1,"servers":{"a":{"tools":{}},"a":{"tools":{}}}}`,
		`{"version":1,"servers":{"a":{"tools":{"t":{"pin":"00","parts":{}}}}}}`} {
		if l, err := ParseLock([]byte(text)); err == nil {
			t.Errorf("%s was read: %+v", text, l)
		}
	}
}

// FuzzParseLock: what is read is written the same.
func FuzzParseLock(f *testing.F) {
	var l Lock
	l.Set("notes", []Seen{{"get_note", []byte(definition)}})
	f.Add(l.Bytes())
	f.Add([]byte(`{"version":1,"servers":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLock(data)
		if err != nil {
			return
		}
		text := l.Bytes()
		again, err := ParseLock(text)
		if err != nil || string(again.Bytes()) != string(text) {
			t.Errorf("%q became %q, %v", text, again.Bytes(), err)
		}
	})
}
