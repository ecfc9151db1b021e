package responses

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
)

func TestHolder(t *testing.T) {
	const random = "abcdefghijklmnopqrstuvwx27"
	for id, want := range map[string]string{
		"msg_" + random + "o1":                                 IDPrefix + random,
		"item_" + random + "i120":                              IDPrefix + random,
		"msg_" + random:                                        "", // as they were made before
		"msg_" + random + "o":                                  "",
		"msg_" + random + "x1":                                 "",
		"msg_" + random + "o1a":                                "",
		"msg_" + random[1:] + "o1":                             "",
		"msg_" + "0" + random[1:] + "o1":                       "",
		"msg_68af8fabb1c081a2b6ad3f9a7e5c3d2e0f1a2b3c4d5e6f70": "",
		"msg": "", "": "",
	} {
		if got := Holder(id); got != want {
			t.Errorf("Holder(%q) = %q, want %q", id, got, want)
		}
	}
	id := newID(IDPrefix)
	for _, of := range []byte{ofInput, ofOutput} {
		name := itemNamer(id, of)
		first, second := name("msg_"), name("fc_")
		if Holder(first) != id || Holder(second) != id || first[4:] == second[3:] || !madeHere(first) {
			t.Errorf("%s and %s are of %s", first, second, id)
		}
	}
}

// An item is found by its id alone, and with whoever else has it when its response is gone.
func TestItemsTellTheirResponse(t *testing.T) {
	m, ctx := &Memory{}, t.Context()
	a, b := newID(IDPrefix), newID(IDPrefix)
	made := itemNamer(a, ofOutput)("msg_")
	item := func(id string) []json.RawMessage {
		return []json.RawMessage{object(text("id", id), text("type", "message"))}
	}
	first := &Stored{ID: a, Input: item("own"), Output: item(made)}
	again := &Stored{ID: b, Input: item(made), Output: item(itemNamer(b, ofOutput)("msg_"))}
	if got := first.Names(); !slices.Equal(got, []string{"own"}) {
		t.Errorf("the first has to be kept under %v", got)
	}
	if got := again.Names(); !slices.Equal(got, []string{made}) {
		t.Errorf("the second has to be kept under %v", got)
	}
	with := func(caller, item, want string) {
		t.Helper()
		s, err := m.With(ctx, caller, item)
		if err != nil || (s == nil) != (want == "") || s != nil && s.ID != want {
			t.Errorf("with %s of %s: %v, %v, want %q", item, caller, s, err, want)
		}
	}
	for _, s := range []*Stored{first, again} {
		if err := m.Put(ctx, "ann", s); err != nil {
			t.Fatal(err)
		}
	}
	with("ann", "own", a)
	with("ann", made, a)
	with("bob", made, "")
	with("ann", itemNamer(a, ofOutput)("fc_"), "") // it has none of that id
	if there, err := m.Delete(context.WithoutCancel(ctx), "ann", a); !there || err != nil {
		t.Fatal(there, err)
	}
	with("ann", "own", "")
	with("ann", made, b)
}
