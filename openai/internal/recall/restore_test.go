package recall

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

func object(t *testing.T, document string) *rawjson.Object {
	t.Helper()
	o, err := rawjson.ParseObject([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// open is a turn whose message has a call of ours and two of the client's.
func open() *memory.Turn {
	return &memory.Turn{Text: "Seen.", Open: &memory.Message{
		Message: json.RawMessage(`{"role":"assistant","content":"Whole."}`),
		After:   []json.RawMessage{json.RawMessage(`{"role":"user"}`)},
		Calls: []memory.Call{
			{ID: "call_a", Raw: json.RawMessage(`{"id":"call_a","type":"function","function":{"name":"files__get","arguments":"{}"}}`), Result: json.RawMessage(`{"role":"tool"}`)},
			{ID: "call_b", Client: "c1", Raw: json.RawMessage(`{"id":"call_b","type":"function","function":{"name":"mine","arguments":"{\"x\":1}"}}`)},
			{ID: "call_c", Client: "c2", Raw: json.RawMessage(`{"id":"call_c","type":"custom","custom":{"name":"draw","input":"o"}}`)},
		},
	}}
}

// TestMerged: of an open message what the client changed counts. What it left as it was
// stays the model's own bytes.
func TestMerged(t *testing.T) {
	const mine, draw = `{"id":"c1","type":"function","function":{"name":"mine","arguments":"{\"x\":1}"}}`, `{"id":"c2","type":"custom","custom":{"name":"draw","input":"o"}}`
	for name, c := range map[string]struct {
		now     string // the client's message; empty for none
		message string
		raws    []string // of the calls after ours
		results []string
	}{
		"as it was": {
			`{"role":"assistant","content":"Seen.","tool_calls":[` + mine + `,` + draw + `]}`, `{"role":"assistant","content":"Whole."}`,
			[]string{`{"id":"call_b","type":"function","function":{"name":"mine","arguments":"{\"x\":1}"}}`, `{"id":"call_c","type":"custom","custom":{"name":"draw","input":"o"}}`},
			[]string{`{"role":"tool","tool_call_id":"call_b","content":"one"}`, ""},
		},
		"another text": {
			`{"role":"assistant","content":"Mine.","tool_calls":[` + mine + `]}`, `{"role":"assistant","content":"Mine."}`,
			[]string{`{"id":"call_b","type":"function","function":{"name":"mine","arguments":"{\"x\":1}"}}`}, []string{`{"role":"tool","tool_call_id":"call_b","content":"one"}`},
		},
		"no text": {`{"role":"assistant","tool_calls":[]}`, `{"role":"assistant","content":null}`, nil, nil},
		"other arguments": {
			`{"role":"assistant","content":"Seen.","tool_calls":[{"id":"c1","type":"function","function":{"name":"mine","arguments":"{\"x\":2}"}},{"id":"c2","type":"custom","custom":{"name":"draw","input":"x"}}]}`,
			`{"role":"assistant","content":"Whole."}`,
			[]string{`{"id":"call_b","type":"function","function":{"name":"mine","arguments":"{\"x\":2}"}}`, `{"id":"call_c","type":"custom","custom":{"name":"draw","input":"x"}}`},
			[]string{`{"role":"tool","tool_call_id":"call_b","content":"one"}`, ""},
		},
		"no message": {"", `{"role":"assistant","content":"Whole."}`, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{objects: []*rawjson.Object{object(t, `{"role":"user","tool_call_id":"c2","content":"no result"}`), object(t, `{"role":"tool","tool_call_id":"c1","content":"one"}`)}}
			var now []*rawjson.Object
			if c.now != "" {
				now = []*rawjson.Object{object(t, c.now)}
				h.objects = slices.Concat(now, h.objects)
			}
			m := h.merged(open(), now)
			if string(m.Message) != c.message || len(m.After) != 1 {
				t.Errorf("the message is %s", m.Message)
			}
			if len(m.Calls) != 1+len(c.raws) || m.Calls[0].ID != "call_a" || m.Calls[0].Result == nil {
				t.Fatalf("the calls are %+v", m.Calls)
			}
			for i, call := range m.Calls[1:] {
				if string(call.Raw) != c.raws[i] || string(call.Result) != c.results[i] {
					t.Errorf("a call is %s with %s", call.Raw, call.Result)
				}
			}
		})
	}
}

// TestSpread: the calls of one message of the model's may be in several of the client's, with
// nothing but results between.
func TestSpread(t *testing.T) {
	open := &memory.Message{Calls: []memory.Call{{ID: "call_a", Client: "c1"}, {ID: "call_b"}, {ID: "call_c", Client: "c2"}, {ID: "call_d", Client: "c3"}}}
	one := func(text, id string) string {
		return `{"role":"assistant","content":` + text + `,"tool_calls":[{"id":"` + id + `"}]}`
	}
	const said = `{"role":"tool","tool_call_id":"c1","content":"one"}`
	for name, c := range map[string]struct {
		history []string
		now     []int
		end     int
	}{
		"one":                {[]string{one(`"Then."`, "c1"), said, said}, []int{0}, 2},
		"none behind it":     {[]string{one(`"Then."`, "c1")}, []int{0}, 0},
		"each by itself":     {[]string{one(`"Then."`, "c1"), said, one(`null`, "c2"), said, one(`""`, "c3"), said}, []int{0, 2, 4}, 5},
		"calls at once":      {[]string{one(`null`, "c1"), one(`"Then."`, "c2"), said, said}, []int{0, 1}, 3},
		"each says the same": {[]string{one(`"Then."`, "c1"), said, one(`"Then."`, "c2"), said}, []int{0, 2}, 3},
		"another says more":  {[]string{one(`"Then."`, "c1"), said, one(`"And."`, "c2"), said}, []int{0}, 1},
		"the turn again":     {[]string{one(`null`, "c1"), said, one(`null`, "c1"), said}, []int{0}, 1},
		"a later turn":       {[]string{one(`null`, "c1"), said, one(`null`, "c9"), said}, []int{0}, 1},
		"the end of a turn":  {[]string{one(`null`, "c1"), said, `{"role":"assistant","content":"Done."}`}, []int{0}, 1},
		"a person between":   {[]string{one(`null`, "c1"), `{"role":"user","content":"Now."}`, one(`null`, "c2")}, []int{0}, 0},
		"the end, and again": {[]string{one(`null`, "c1"), said, one(`null`, "c2"), said, one(`null`, "c1"), said}, []int{0, 2}, 3},
	} {
		h := &history{}
		for _, m := range c.history {
			h.objects = append(h.objects, object(t, m))
		}
		var want []*rawjson.Object
		for _, i := range c.now {
			want = append(want, h.objects[i])
		}
		if now, end := h.spread(0, open); end != c.end || !slices.Equal(now, want) {
			t.Errorf("%s: %d messages to %d, want %d to %d", name, len(now), end, len(want), c.end)
		}
	}
}

// TestResultOfItems: a client that answers a call with several items answers with all of them,
// and one that has a turn twice answers each time.
func TestResultOfItems(t *testing.T) {
	const calls = `{"role":"assistant","tool_calls":[{"id":"c1"},{"id":"c2"}]}`
	h := &history{}
	for _, said := range [][2]string{{"", calls}, {"c1", "half"}, {"c2", "else"}, {"c1", "done"}, {"", calls}, {"c1", "again"}} {
		o := object(t, calls)
		if said[0] != "" {
			o = object(t, `{"role":"tool","tool_call_id":"`+said[0]+`","content":"`+said[1]+`"}`)
			model.Items{Items: []json.RawMessage{json.RawMessage(`"` + said[1] + `"`)}}.Put(o)
		}
		h.objects, h.messages = append(h.objects, o), append(h.messages, o.Bytes())
	}
	for call, want := range map[made]string{{h.objects[0], "c1"}: `["half" "done"]`, {h.objects[0], "c2"}: `["else"]`, {h.objects[4], "c1"}: `["again"]`} {
		if items, _ := model.ItemsOf(h.result(call).Bytes()); fmt.Sprintf("%s", items.Items) != want {
			t.Errorf("%s: %s, want %s", call.id, items.Items, want)
		}
	}
	if h.result(made{h.objects[4], "c2"}) != nil {
		t.Error("a call that was answered in an earlier turn is answered again")
	}
}

// TestWithoutText: of messages that the client did not see the texts beside calls go with
// the text that it changed, and results stay.
func TestWithoutText(t *testing.T) {
	got := withoutText([]json.RawMessage{
		json.RawMessage(`{"role":"assistant","content":"A.","tool_calls":[{}]}`),
		json.RawMessage(`{"role":"tool","content":"kept"}`), json.RawMessage(`broken`),
	})
	want := []string{`{"role":"assistant","content":null,"tool_calls":[{}]}`, `{"role":"tool","content":"kept"}`, `broken`}
	for i := range want {
		if string(got[i]) != want[i] {
			t.Errorf("%s, want %s", got[i], want[i])
		}
	}
}

// TestDigestOfMessages: how a client spells a message back does not matter, and what the
// model reads of it does.
func TestDigestOfMessages(t *testing.T) {
	sum := func(messages ...string) string {
		d := newDigest()
		for _, m := range messages {
			d.message(object(t, m))
		}
		return d.sum()
	}
	const call = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	same := []string{
		call,
		`{"tool_calls":[{"index":0,"function":{"arguments":"{}","name":"f"},"id":"a"}],"role":"assistant"}`,
		`{"role":"assistant","content":"","refusal":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]}`,
	}
	for _, m := range same {
		if sum(m) != sum(call) {
			t.Errorf("%s is another message", m)
		}
	}
	if sum(`{"role":"user","content":[{"type":"text","text":"hi"}]}`) != sum(`{"role":"user","content":"hi"}`) {
		t.Error("a text in one part is another text")
	}
	seen := map[string]string{}
	for _, m := range []string{
		call,
		`{"role":"user","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{ }"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"i"}}]}`,
		`{"role":"assistant","content":null}`,
		`{"role":"tool","tool_call_id":"a","content":"x"}`, `{"role":"tool","tool_call_id":"b","content":"x"}`,
		`{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"}]}`,
	} {
		if other, ok := seen[sum(m)]; ok {
			t.Errorf("%s and %s are the same", m, other)
		}
		seen[sum(m)] = m
	}
	if sum(call, call) == sum(call) {
		t.Error("two messages are one")
	}
}

// TestProves: a visible history shows whose it is by as much as people and models wrote.
func TestProves(t *testing.T) {
	d := newDigest()
	long := string(make([]byte, enough))
	for _, role := range []string{"system", "developer"} {
		o := rawjson.Object{}
		o.Set("role", rawjson.Quote(role))
		o.Set("content", rawjson.Quote(long))
		d.message(&o)
	}
	if (&Thread{}).proves(d) || !(&Thread{Request: Request{Identified: true}}).proves(d) {
		t.Error("what is said to everybody shows whose a history is, or a name does not")
	}
	o := rawjson.Object{}
	o.Set("role", rawjson.Quote("user"))
	o.Set("content", rawjson.Quote(long[1:]))
	if d.message(&o); (&Thread{}).proves(d) {
		t.Errorf("%d bytes are enough", d.weight)
	}
	o.Set("content", rawjson.Quote("x"))
	if d.message(&o); !(&Thread{}).proves(d) {
		t.Errorf("%d bytes are not enough", d.weight)
	}
}

// TestShared: once a history is whole, there is one list of its messages, and what the
// client will send next time is the same as before.
func TestShared(t *testing.T) {
	const user, said = `{"role":"user","content":"Go."}`, `{"role":"assistant","content":"Gone."}`
	for name, c := range map[string]struct {
		messages []string
		guide    string
		shared   bool
	}{
		"one":                       {[]string{user}, "", true},
		"a guide in front":          {[]string{user, said, user}, "Read.", true},
		"a guide in the first":      {[]string{`{"role":"system","content":"Be kind."}`, user, said, user}, "Read.", true},
		"a message that is changed": {[]string{user, `{"role":"assistant","content":"Gone.","reasoning_items":1,"tool_calls":[{"id":"` + strings.Repeat("x", 80) + `","type":"function","function":{"name":"f","arguments":"{}"}}]}`, user}, "Read.", false},
	} {
		t.Run(name, func(t *testing.T) {
			var messages []json.RawMessage
			for _, m := range c.messages {
				messages = append(messages, json.RawMessage(m))
			}
			d := &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}}
			thread := &Thread{Request: Request{Messages: messages}, Dialogue: d, Guide: c.guide, first: messages[0]}
			want := thread.visibleDigest("Done.", nil).sum()
			if err := thread.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.AddHidden(json.RawMessage(said))
			if got := thread.visibleDigest("Done.", nil).sum(); got != want || len(thread.Request.Messages) != len(messages) {
				t.Errorf("the client's history has become another one: %s", thread.Request.Messages)
			}
			if shared := &thread.Request.Messages[0] != &messages[0]; shared != c.shared {
				t.Errorf("shared is %v", shared)
			}
		})
	}
}

// TestParts: a client's message that is several of the model's comes apart by what is kept of
// its calls, each with its text; the client's own calls stay between.
func TestParts(t *testing.T) {
	kept := func(text string, ids ...string) *memory.Turn {
		m := &memory.Message{Calls: []memory.Call{{ID: "ours"}}}
		for _, id := range ids {
			m.Calls = append(m.Calls, memory.Call{ID: "call_" + id, Client: id})
		}
		return &memory.Turn{Text: text, Open: m}
	}
	for name, c := range map[string]struct {
		says, calls string
		kept        []*memory.Turn
		want        []string // what each part says and calls
	}{
		"one turn":          {"A.", "a1 a2", []*memory.Turn{kept("A.", "a1", "a2")}, nil},
		"nothing kept":      {"A.", "x y", nil, nil},
		"two turns":         {"A.B.", "a1 a2 b", []*memory.Turn{kept("A.", "a1", "a2"), kept("B.", "b")}, []string{"A.: a1 a2", "B.: b"}},
		"paragraphs":        {"A.\n\nB.", "a b", []*memory.Turn{kept("A.", "a"), kept("B.", "b")}, []string{"A.: a", "B.: b"}},
		"begun with lines":  {"\n\nA.\n\n\n\nB.", "a b", []*memory.Turn{kept("\n\nA.", "a"), kept("\n\nB.", "b")}, []string{"\n\nA.: a", "\n\nB.: b"}},
		"no texts":          {"", "a b", []*memory.Turn{kept("", "a"), kept("", "b")}, []string{": a", ": b"}},
		"another text":      {"C.", "a b", []*memory.Turn{kept("A.", "a"), kept("B.", "b")}, []string{"C.: a", ": b"}},
		"the client's own":  {"X.A.", "x y a z", []*memory.Turn{kept("", "a")}, []string{"X.A.: x y", ": a", ": z"}},
		"its text":          {"A.X.", "a x", []*memory.Turn{kept("A.", "a")}, []string{"A.: a", "X.: x"}},
		"calls in disorder": {"", "a1 b a2", []*memory.Turn{kept("", "a1", "a2"), kept("", "b")}, []string{": a1 a2", ": b"}},
	} {
		h := &history{turns: map[string]*memory.Turn{}}
		var calls, results []string
		for id := range strings.FieldsSeq(c.calls) {
			calls = append(calls, `{"id":"`+id+`"}`)
			results = append(results, `{"role":"tool","tool_call_id":"`+id+`","content":"of `+id+`"}`)
		}
		o := object(t, `{"role":"assistant","tool_calls":[`+strings.Join(calls, ",")+`]}`)
		o.Set("content", rawjson.Quote(c.says))
		h.objects, h.keys = append(h.objects, o), [][]string{nil}
		for _, r := range results {
			h.objects = append(h.objects, object(t, r))
		}
		for _, turn := range c.kept {
			for _, call := range turn.Open.Calls[1:] {
				same := *turn // as a store that reads it for each key
				h.turns[CallKey(call.Client)], h.keys[0] = &same, append(h.keys[0], CallKey(call.Client))
			}
		}
		parts, end, err := h.parts(0)
		var got []string
		for _, p := range parts {
			ids := callIDs(p.now)
			got = append(got, contentText(p.now.Get("content"))+": "+strings.Join(ids, " "))
			for _, id := range ids {
				if answer := h.result(made{p.now, id}); answer == nil || contentText(answer.Get("content")) != "of "+id {
					t.Errorf("%s: %s has the result %v", name, id, answer)
				}
			}
		}
		if err != nil || !slices.Equal(got, c.want) || len(c.want) > 0 && end != len(results) {
			t.Errorf("%s: %q to %d, %v", name, got, end, err)
		}
	}
	// Where one of them is lost, nobody knows what ran behind it.
	h := &history{objects: []*rawjson.Object{object(t, `{"role":"assistant","tool_calls":[{"id":"a"},{"id":"`+WroteID+`x"}]}`)}}
	h.turns, h.keys = map[string]*memory.Turn{CallKey("a"): kept("", "a")}, [][]string{{CallKey("a"), CallKey(WroteID + "x")}}
	if _, _, err := h.parts(0); err == nil {
		t.Error("a lost turn is gone on from")
	}
	h.objects = append(h.objects, object(t, `{"role":"user"}`))
	if parts, _, err := h.parts(0); err != nil || len(parts) != 2 {
		t.Errorf("a turn that is over came apart into %d: %v", len(parts), err)
	}
}

// TestPartOfTheClients: what the client called keeps its results, also where the dialect takes
// other ids.
func TestPartOfTheClients(t *testing.T) {
	id := strings.Repeat("x", 80)
	d := &model.Dialogue{Client: &model.Client{}, Request: model.Request{Object: &rawjson.Object{}}}
	o := object(t, `{"role":"assistant","content":null,"tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{}"}}]}`)
	h := &history{results: map[made]*rawjson.Object{{o, id}: object(t, `{"role":"tool","tool_call_id":"`+id+`","content":"done"}`)}}
	(&Thread{Dialogue: d}).restorePart(h, part{now: o}, true)
	if all := d.History(); len(all) != 2 || !strings.Contains(string(all[1]), "done") {
		t.Errorf("%s", all)
	}
}

// Droid leaves ids of calls as they are that begin like OpenAI's, and cuts others: what
// tools did beside its calls was then not found, and done again.
func TestIDsBeginLikeOpenAIs(t *testing.T) {
	for _, prefix := range []string{ReadID, WroteID} {
		if id := prefix + strings.Repeat("A", random); !strings.HasPrefix(id, "call_") || len(id) > 40 {
			t.Errorf("%s has to begin with call_, and to have 40 characters at most", id)
		}
	}
}

// Each call of a long history is looked at, and most begin like ours: none costs more than
// the look, and ours are known however they are written.
func TestCallKeys(t *testing.T) {
	id := ReadID + strings.Repeat("A", random)
	ours, theirs := `{"tool_calls":[{"id":"`+id+`"}]}`, object(t, `{"tool_calls":[{"id":"call_`+strings.Repeat("A", 24)+`"}]}`)
	for _, written := range []string{ours, strings.Replace(ours, "call_d", `\u0063all_d`, 1), strings.Replace(ours, "dragoman", `drag\u006fman`, 1)} {
		if keys := appendCallKeys(nil, object(t, written)); !slices.Equal(keys, []string{CallKey(id)}) {
			t.Errorf("%s: %q", written, keys)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if keys := appendCallKeys(nil, theirs); keys != nil {
			t.Errorf("%q", keys)
		}
	}); n > 0 {
		t.Errorf("a call of somebody else's costs %v allocations", n)
	}
}

// What an earlier version kept is found by the ids that it gave, and what it lost does not run
// twice.
func TestIDsOfEarlierVersions(t *testing.T) {
	for id, lost := range map[string]bool{read + strings.Repeat("A", random): false, wrote + strings.Repeat("A", random): true} {
		o := object(t, `{"role":"assistant","tool_calls":[{"id":"`+id+`"}]}`)
		keys := appendCallKeys(nil, o)
		if !slices.Equal(keys, []string{CallKey(id)}) || !Names(id) {
			t.Errorf("%s: %q", id, keys)
		}
		h := &history{keys: [][]string{keys}, objects: []*rawjson.Object{o}}
		if _, err := h.turn(0); (err != nil) != lost {
			t.Errorf("%s, lost: %v", id, err)
		}
	}
}
