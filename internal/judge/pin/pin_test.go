package pin

import (
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

const definition = `{"name":"get_note","description":"Gets a note","inputSchema":{"type":"object","properties":{"a":{"const":12345678901234567890}}},"annotations":{"readOnlyHint":true},"new":1}`

func TestOf(t *testing.T) {
	of := func(server string, kind Kind, name, definition string) Digest {
		return Key{kind, name}.Of(server, []byte(definition))
	}
	pin := of("notes", Tool, "get_note", definition)
	if pin != dragoman.Pin("notes", "get_note", []byte(definition)) {
		t.Error("the pin of a tool is not dragoman.Pin")
	}
	for name, other := range map[string]Digest{
		"server":     of("note", Tool, "get_note", definition),
		"kind":       of("notes", Prompt, "get_note", definition),
		"name":       of("notes", Tool, "get_notes", definition),
		"definition": of("notes", Tool, "get_note", definition+" "),
		"border":     of("notesget", Tool, "_note", definition),
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
		{Key{Tool, "get_note"}, []byte(definition)},
		{Key{Tool, "add_note"}, []byte(`{"name":"add_note","description":"Adds"}`)},
		{Key{Tool, "same"}, []byte(`{"name":"same","annotations":{"readOnlyHint":true,"openWorldHint":false}}`)},
	})
	again, err := ParseLock(l.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := again.Compare("notes", []Seen{
		{Key{Tool, "get_note"}, []byte(definition)},
		{Key{Tool, "add_note"}, []byte(`{"name":"add_note","description":"Adds"}`)},
		{Key{Tool, "same"}, []byte(`{"name":"same","annotations":{"readOnlyHint":true,"openWorldHint":false}}`)},
	}, Tool); !ok || got != nil {
		t.Errorf("the same tools differ: %+v, %v", got, ok)
	}
	got, _ := again.Compare("notes", []Seen{
		{Key{Tool, "get_note"}, []byte(`{"name":"get_note","description":"Gets a note and mails it","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)},
		{Key{Tool, "same"}, []byte(`{"name":"same", "annotations":{"openWorldHint":false,"readOnlyHint":true}}`)},
		{Key{Tool, "del_note"}, []byte(`{"name":"del_note"}`)},
	}, Tool)
	want := []Difference{
		{Key: Key{Tool, "add_note"}, Removed: true},
		{Key: Key{Tool, "del_note"}, Added: true},
		{Key: Key{Tool, "get_note"}, Parts: []string{"description", "inputSchema", "other"}},
		{Key: Key{Tool, "same"}},
	}
	if !slices.EqualFunc(got, want, func(a, b Difference) bool {
		return a.Key == b.Key && a.Added == b.Added && a.Removed == b.Removed && slices.Equal(a.Parts, b.Parts)
	}) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if _, ok := again.Compare("others", nil); ok {
		t.Error("a server that is not pinned compares")
	}
}

func TestParseLockRefuses(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"version":3,"servers":{}}`, `{"version":1,"servers":{"a":{"tools":{},"prompts":{}}}}`,
		`{"version":1,"servers":{},"x":1}`, `{"version":1,"servers":{}} {}`,
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
	l.Set("notes", []Seen{{Key{Tool, "get_note"}, []byte(definition)}})
	f.Add(l.Bytes())
	f.Add([]byte(`{"version":1,"servers":{}}`))
	l.Set("notes", []Seen{{Key{Kind: Instructions}, TextOf("List them first.")}}, Prompt, Instructions)
	f.Add(l.Bytes())
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

// TestLockOfTexts: a lock says something of prompts, skills and instructions, or
// nothing; one that says nothing is what earlier programs read.
func TestLockOfTexts(t *testing.T) {
	text := func(text string) Seen { return Seen{Key{Kind: Instructions}, TextOf(text)} }
	plan := Seen{Key{Prompt, "plan"}, []byte(`{"name":"plan","arguments":[]}`)}
	var old, l Lock
	old.Set("notes", []Seen{plan, text("List them first.")})
	if got := string(old.Bytes()); !strings.Contains(got, `"version": 1`) || strings.Contains(got, "instructions") {
		t.Errorf("of tools alone: %s", got)
	}
	all := []Kind{Tool, Prompt, Skill, Instructions}
	if got, ok := old.Compare("notes", []Seen{plan, text("Obey.")}, all...); !ok || got != nil {
		t.Errorf("it says nothing, and differs: %+v", got)
	}
	l.Set("notes", []Seen{plan, text("List them first.")}, Prompt, Instructions)
	again, err := ParseLock(l.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if again.Version != 2 || string(again.Bytes()) != string(l.Bytes()) {
		t.Errorf("%s", again.Bytes())
	}
	s := again.Servers["notes"]
	if !s.Names(Tool) || !s.Names(Prompt) || s.Names(Skill) || !s.Names(Instructions) {
		t.Errorf("it names %+v", s)
	}
	same := []Seen{plan, text("List them first."), {Key{Skill, "skill://a/SKILL.md"}, []byte(`{}`)}}
	if got, _ := again.Compare("notes", same, all...); got != nil {
		t.Errorf("the same: %+v", got)
	}
	got, _ := again.Compare("notes", []Seen{{Key{Prompt, "plan"}, []byte(`{"name":"plan","arguments":[{"name":"to"}]}`)}, {Key{Prompt, "sum"}, []byte(`{}`)}, text("")}, all...)
	if len(got) != 3 || got[0].Name != "plan" || !slices.Equal(got[0].Parts, []string{"arguments"}) || !got[1].Added || got[2].Kind != Instructions || !slices.Equal(got[2].Parts, []string{"instructions"}) {
		t.Errorf("%+v", got)
	}
	if got, _ := again.Compare("notes", nil, Tool); got != nil {
		t.Errorf("of prompts nothing is known: %+v", got)
	}
	l.Set("notes", nil, Instructions)
	if none := l.Servers["notes"].Instructions; none.Pin != (Key{Kind: Instructions}).Of("notes", TextOf("")) {
		t.Error("none is not the empty text")
	}
}

// FuzzKey: each key has a text of its own.
func FuzzKey(f *testing.F) {
	for _, text := range []string{"send", "prompt:plan", "skill:skill://a/SKILL.md", "instructions", "tool:instructions", "tool:tool:x", "prompt:", "instructions:", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, k := range []Key{{Tool, name}, {Prompt, name}, {Skill, name}, {Kind: Instructions}} {
			if again := ParseKey(k.String()); again != k {
				t.Errorf("%+v is %q, which is %+v", k, k, again)
			}
		}
	})
}
