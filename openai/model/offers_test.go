package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/stage/liveheap"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

func numbered(n int) *dragoman.Tools {
	tools := make([]dragoman.Tool, n)
	for i := range tools {
		name := fmt.Sprintf("tool_%d", i)
		schema := json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"where it is"}},"required":["path"]}`)
		tools[i] = dragoman.Tool{
			Name: "files__" + name, Server: "files", Original: name, Description: "Does thing " + name, InputSchema: schema,
			Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":` + string(schema) + `}`),
		}
		tools[i].Pin = dragoman.Pin("files", name, tools[i].Definition)
	}
	return dragoman.NewTools(tools)
}

// A list that is offered again is not made again; one that was offered once makes
// room for the next; and what everybody uses is not pushed out by either.
func TestOffers(t *testing.T) {
	s, d := &Offers{}, conservative()
	whole := numbered(50)
	s.get(whole, d, 0, Search{})
	o := s.get(whole, d, 0, Search{})
	for range 100 {
		s.get(numbered(50), d, 0, Search{})
	}
	if s.get(whole, d, 0, Search{}) != o {
		t.Error("the list that is used again and again was made anew")
	}
	if len(s.kept) > maxOnce+1 {
		t.Errorf("%d offers are kept", len(s.kept))
	}
	if other := s.get(whole, mustDialect(t, "gemini"), 0, Search{}); other == o {
		t.Error("two dialects share an offer")
	}
}

// What is kept counts, and goes when nobody uses it.
func TestOffersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := &Offers{Bytes: 1 << 20}, conservative()
		for range 20 {
			list := numbered(50)
			s.get(list, d, 0, Search{})
			s.get(list, d, 0, Search{})
		}
		if s.size > 1<<20 || len(s.kept) < 2 {
			t.Errorf("%d offers of %d bytes", len(s.kept), s.size)
		}
		large := numbered(1000) // alone larger than all that may be kept
		if first, again := s.get(large, d, 0, Search{}), s.get(large, d, 0, Search{}); first != again {
			t.Error("a large list is made with each request")
		}
		<-time.After(unused)
		s.get(numbered(1), d, 0, Search{})
		if len(s.kept) != 1 {
			t.Errorf("%d offers are kept after %s", len(s.kept), unused)
		}
	})
}

// What is forgotten is made again, also for those who are making it.
func TestOffersForget(t *testing.T) {
	s, d, list := &Offers{}, conservative(), numbered(50)
	s.Forget()
	before := s.get(list, d, 0, Search{})
	s.Forget()
	if s.size != 0 || s.once != 0 || len(s.kept) != 0 || s.order.Len() != 0 || len(s.of) != 0 {
		t.Errorf("%d offers of %d bytes are kept, %d of them used once", len(s.kept), s.size, s.once)
	}
	if s.get(list, d, 0, Search{}) == before {
		t.Error("what was forgotten is there")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				s.get(numbered(5), d, 0, Search{})
				s.Forget()
			}
		})
	}
	wg.Wait()
	if s.size != 0 || s.once != 0 {
		t.Errorf("%d bytes are said to be kept, and %d offers used once", s.size, s.once)
	}
}

// What offers say that they hold is what they hold: lists of a server that changes them again
// and again, of schemas that take far more memory than text.
func TestOffersHoldWhatTheySay(t *testing.T) {
	const most = 16 << 20
	table, err := dialect.Builtin().Derive("fresh", "openai", func(any) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	d, _ := table.For("fresh")
	s := &Offers{Bytes: most}
	before := liveheap.Bytes()
	for i := range 600 {
		var properties strings.Builder
		for j := range 150 {
			fmt.Fprintf(&properties, `,"p%d_%d":{"type":"string","enum":["a","b","c"]}`, i, j)
		}
		tool := dragoman.Tool{Name: "t", Server: "s", Original: "t", Definition: json.RawMessage(`{}`), InputSchema: json.RawMessage(`{"type":"object","properties":{` + properties.String()[1:] + `}}`)}
		tool.Pin = dragoman.Pin("s", "t", tool.InputSchema)
		list := dragoman.NewTools([]dragoman.Tool{tool})
		s.get(list, d, 0, Search{})
		s.get(list, d, 0, Search{})
	}
	// The dialect keeps plans of its own accord, which may be others.
	held := liveheap.Bytes() - before
	if limit := int64(most + 64<<20); held > limit*3/2 || s.size > most {
		t.Errorf("%d MiB are held, and %d said", held>>20, s.size>>20)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(d)
}

// A selection of a large list is put together from plans that are there: it converts
// nothing, though the dialect's own cache is smaller than the list.
func TestSelectionsConvertNothing(t *testing.T) {
	const n = 3000
	s, d := &Offers{}, mustDialect(t, "qwen")
	whole := numbered(n)
	s.get(whole, d, 0, Search{})
	o := s.get(whole, d, 0, Search{})
	selection := dragoman.NewTools(append([]dragoman.Tool(nil), whole.All()...))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	other := s.get(selection, d, 0, Search{})
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / n; per > 2048 {
		t.Errorf("%d bytes a tool were allocated", per)
	}
	if !bytes.Equal(o.functions[0], other.functions[0]) {
		t.Error("the selection offers something else")
	}
}

// Requests that come at the same time make an offer once, and wait for nobody else's.
func TestOffersConcurrently(t *testing.T) {
	s, d, list := &Offers{}, conservative(), numbered(200)
	var wg sync.WaitGroup
	got := make([]*offer, 16)
	for i := range got {
		wg.Go(func() { got[i] = s.get(list, d, 0, Search{}) })
	}
	wg.Wait()
	for _, o := range got {
		if o != got[0] {
			t.Fatal("made more than once")
		}
	}
}

// A function of the client's with one of our names costs a request one plan, and
// leaves the rest of the offer as it is.
func TestAvoid(t *testing.T) {
	d := conservative()
	base := makeOffer(numbered(30), d, 0, Search{}, planned(d))
	taken := map[string]bool{"files__tool_3": true, "files__tool_7": true, "files__tool_7_mcp": true, "FILES__TOOL_9": true, "other": true}
	o := base.avoid(taken, d)
	var document bytes.Buffer
	document.WriteByte('[')
	for _, part := range o.functions {
		document.Write(part)
	}
	document.WriteByte(']')
	functions, err := rawjson.Elements(document.Bytes())
	if err != nil || !json.Valid(document.Bytes()) {
		t.Fatalf("%v: %s", err, document.Bytes())
	}
	var names []string
	for _, raw := range functions {
		var f struct{ Function struct{ Name string } }
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Function.Name)
	}
	if len(names) != 30 || names[3] != "files__tool_3_mcp" || names[7] != "files__tool_7_mcp2" || names[29] != "files__tool_29" {
		t.Errorf("offered %v", names)
	}
	for name, want := range map[string]string{
		"files__tool_3": "", "FILES__tool_3": "", "tool_3": "tool_3", "files__tool_3_mcp": "tool_3", "Files__Tool_7_MCP2": "tool_7",
		"files__tool_4": "tool_4", "TOOL_4": "tool_4", "unknown": "",
	} {
		got := ""
		tool, plan := o.find(name)
		if tool != nil {
			got = tool.Original
		}
		if got != want || (plan == nil) != (tool == nil) {
			t.Errorf("%s means %q, want %q", name, got, want)
		}
	}
	if base.avoid(map[string]bool{"other": true}, d) != base {
		t.Error("nothing clashes, and the offer is another one")
	}
	if len(base.renamed) > 0 || strings.Contains(string(base.functions[0]), "_mcp") {
		t.Error("the shared offer was changed")
	}
}

func mustDialect(t testing.TB, name string) *dialect.Dialect {
	d, err := dialect.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Where there is no room for all tools, each server keeps as many as the others, and
// the order stays that of the list.
func TestOfferLeavesOutEvenly(t *testing.T) {
	var tools []dragoman.Tool
	for _, server := range []struct {
		name string
		n    int
	}{{"a", 50}, {"b", 4}, {"c", 40}} {
		for i := range server.n {
			name := fmt.Sprintf("%s__%02d", server.name, i)
			tools = append(tools, dragoman.Tool{Name: name, Server: server.name, Original: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
	}
	d := conservative() // 64 in a request, of which one is for read_more
	list := dragoman.NewTools(tools)
	offered := map[string]int{}
	last := ""
	for tool := range (&Offers{}).get(list, d, 4, Search{}).all() {
		offered[tool.Server]++
		if tool.Name < last {
			t.Errorf("%s stands behind %s", tool.Name, last)
		}
		last = tool.Name
	}
	if offered["a"] != 28 || offered["b"] != 4 || offered["c"] != 27 {
		t.Errorf("offered %v", offered)
	}
	if left, searched := LeftOut(list, d, Search{}); searched || len(left) != 31 || left[0] != "c__29" || left[30] != "a__49" {
		t.Errorf("left out: %v", left)
	}
	if left, searched := LeftOut(list, d, Search{When: Auto}); !searched || len(left) > 0 {
		t.Errorf("searched: %v, and %v left out", searched, left)
	}
}
