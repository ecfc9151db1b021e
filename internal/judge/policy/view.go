package policy

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// View returns those of the tools that a caller may see: all that can be called
// with some arguments, at some time of a conversation. It is the same pointer for
// all callers who see the same, while the tools stay equal, and tools itself where
// nothing is hidden. What is in quarantine is seen by those who could call it.
func (p *Policy) View(who caller.Caller, tools *dragoman.Tools) *dragoman.Tools {
	if p.open(&who) || tools.Len() == 0 {
		return tools
	}
	return p.view(&who, tools)
}

// List returns what a caller may see of a list: its tools as View does, its
// entries, and the servers of which there is anything to be seen, or, as far as the
// caller's own rights say, could be once they have listed something. It is the same
// pointer for the same list, and list itself where nothing is hidden.
func (p *Policy) List(who caller.Caller, list *dragoman.List) *dragoman.List {
	if p.open(&who) {
		return list
	}
	class := p.seer(&who)
	number := p.views.lists.number(list)
	if seen, ok := p.views.listed.Get(class, number); ok {
		return seen
	}
	p.views.listing.Lock()
	defer p.views.listing.Unlock()
	if seen, ok := p.views.listed.Get(class, number); ok {
		return seen
	}
	seen := p.list(&who, list)
	size := int64(len(seen.Entries))*int64(unsafe.Sizeof(dragoman.Entry{})) + int64(len(seen.Servers))*int64(unsafe.Sizeof(dragoman.Server{}))
	p.views.listed.Put(class, number, seen, size)
	return seen
}

// Reaches reports whether a caller was granted anything that a server of this label may
// have to offer, whatever it offers now and whatever rules say.
func Reaches(who caller.Caller, label string) bool {
	for kind := range cedarTypes {
		if kind == string(Model) || kind == string(Route) {
			continue
		}
		begin := kind + ":" + qualified.Name(label, "")
		if slices.ContainsFunc(who.Grants, func(grant string) bool { return glob.Begins(grant, begin) }) ||
			slices.ContainsFunc(who.Scopes, func(scope string) bool { return strings.HasPrefix(scope, begin) }) {
			return who.Valid()
		}
	}
	return false
}

// open reports that a caller sees everything.
func (p *Policy) open(who *caller.Caller) bool {
	return p.Zero() && who.Valid() && slices.Contains(who.Grants, "*")
}

func (p *Policy) list(who *caller.Caller, list *dragoman.List) *dragoman.List {
	if !who.Valid() {
		return &dragoman.List{Changed: list.Changed}
	}
	seen := *list
	seen.Tools = p.View(*who, list.Tools)
	seen.Entries, seen.Servers = nil, nil
	listed, visible := map[string]bool{}, map[string]bool{}
	for i := range list.Entries {
		e := &list.Entries[i]
		listed[e.Server] = true
		if p.sees(&Request{Caller: *who, Action: Read, Entry: e}) {
			visible[e.Server] = true
			seen.Entries = append(seen.Entries, *e)
		}
	}
	for i := range list.Tools.All() {
		listed[list.Tools.All()[i].Server] = true
	}
	for i := range seen.Tools.All() {
		visible[seen.Tools.All()[i].Server] = true
	}
	for _, s := range list.Servers {
		if visible[s.Label] || !listed[s.Label] && Reaches(*who, s.Label) {
			seen.Servers = append(seen.Servers, s)
		}
	}
	if seen.Tools == list.Tools && len(seen.Entries) == len(list.Entries) && len(seen.Servers) == len(list.Servers) {
		return list
	}
	return &seen
}

// sees reports whether a request of that kind can ever be allowed or asked about.
func (p *Policy) sees(r *Request) bool {
	for other, same := range r.others() {
		if same && p.forbids(other) || !same && !p.seesRead(other) {
			return false
		}
	}
	return p.seesRead(r)
}

// forbids reports whether a rule denies a request, whatever its arguments are.
func (p *Policy) forbids(r *Request) bool {
	t, ok := r.target()
	if !ok || p.Zero() {
		return false
	}
	d := p.decide(r, &t, false)
	return d.forbids != nil || d.failed != nil
}

func (p *Policy) seesRead(r *Request) bool {
	t, ok := r.target()
	switch {
	case !ok || !r.Caller.Valid():
		return false
	case t.tool != nil && t.server == "":
		return true
	case !t.granted(&r.Caller):
		return false
	case p.strays(&t, &r.Caller):
		return false
	case p.Zero():
		return true
	}
	return p.decide(r, &t, false).possible(&t) || p.uses.tainted && p.decide(r, &t, true).possible(&t)
}

// How much is remembered of views.
const (
	viewBytes = 128 << 20 // of tools that some callers see
	listBytes = 32 << 20
	markBytes = 64 << 20
	// maxNumbers is how many definitions of tools have a number at a time.
	maxNumbers = 1 << 16
	// recentLists is how many lists are told apart at a time.
	recentLists = 16
)

// views are what callers see. A caller's marks say of every tool, by a number that
// the tool has, whether the caller sees it; what has the same marks is one view.
type views struct {
	tools  recent[*dragoman.Tools]
	lists  recent[*dragoman.List]
	shown  bounded.Map[*dragoman.Tools] // by tools and marks
	listed bounded.Map[*dragoman.List]  // by class and list

	listing sync.Mutex // one list is made at a time

	mu      sync.Mutex
	marks   *bounded.Map[*marks] // by class
	numbers map[numbered]int
}

type numbered struct {
	pin         [32]byte
	declared    dragoman.Effect
	closedWorld bool
}

// marks are what a class of callers sees.
type marks struct {
	counted int64 // of [views]: what it may take, in bytes

	mu          sync.Mutex
	known, seen []uint64
	last        *dragoman.Tools // what was made last
}

// marksSize is what marks of few tools take.
const marksSize = 128

func (v *views) init() {
	v.shown = bounded.Map[*dragoman.Tools]{Bytes: viewBytes, Age: rememberedFor}
	v.listed = bounded.Map[*dragoman.List]{Bytes: listBytes, Age: rememberedFor}
	v.forget()
}

func (v *views) forget() {
	v.marks = &bounded.Map[*marks]{Bytes: markBytes, Age: rememberedFor}
	v.numbers = map[numbered]int{}
}

// of returns the marks of a class, and the numbers of tools.
func (v *views) of(class string, all []dragoman.Tool) (*marks, []int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.numbers) > maxNumbers {
		v.forget()
	}
	numbers := make([]int, len(all))
	for i := range all {
		key := numbered{all[i].Pin, all[i].Declared, all[i].ClosedWorld}
		n, ok := v.numbers[key]
		if !ok {
			n = len(v.numbers)
			v.numbers[key] = n
		}
		numbers[i] = n
	}
	m, ok := v.marks.Get(class, "")
	if !ok {
		m = &marks{}
	}
	// Most gateways have few tools, and some have very many classes.
	if most := int64(len(v.numbers)/8*2) + marksSize; m.counted < most {
		m.counted = most
		v.marks.Put(class, "", m, most)
	}
	return m, numbers
}

// seer names all callers who see the same.
func (p *Policy) seer(who *caller.Caller) string {
	if !who.Valid() {
		return "nobody"
	}
	return strings.Join(who.Grants, " ") + "\n" + strings.Join(who.Scopes, " ") + "\n" + p.class(who)
}

func (p *Policy) view(who *caller.Caller, tools *dragoman.Tools) *dragoman.Tools {
	all := tools.All()
	m, numbers := p.views.of(p.seer(who), all)
	m.mu.Lock()
	defer m.mu.Unlock()
	visible, count := make([]byte, (len(all)+7)/8), 0
	for i, n := range numbers {
		if m.sees(n, func() bool { return p.sees(&Request{Caller: *who, Action: Call, Tool: &all[i]}) }) {
			visible[i/8] |= 1 << (i % 8)
			count++
		}
	}
	if count == len(all) {
		m.last = tools
		return tools
	}
	number := p.views.tools.number(tools)
	if shown, ok := p.views.shown.Get(number, string(visible)); ok {
		m.last = shown
		return shown
	}
	kept := make([]dragoman.Tool, 0, count)
	for i := range all {
		if visible[i/8]&(1<<(i%8)) != 0 {
			kept = append(kept, all[i])
		}
	}
	shown := dragoman.NewTools(kept)
	if m.last != nil && m.last.Equal(shown) {
		shown = m.last
	}
	m.last = shown
	p.views.shown.Put(number, string(visible), shown, int64(count)*int64(unsafe.Sizeof(dragoman.Tool{})))
	return shown
}

// sees returns the mark of a number, which is made where there is none.
func (m *marks) sees(n int, decide func() bool) bool {
	word, bit := n/64, uint64(1)<<(n%64)
	for len(m.known) <= word {
		m.known, m.seen = append(m.known, 0), append(m.seen, 0)
	}
	if m.known[word]&bit == 0 {
		m.known[word] |= bit
		if decide() {
			m.seen[word] |= bit
		}
	}
	return m.seen[word]&bit != 0
}

// recent numbers the values that were asked for last.
type recent[T comparable] struct {
	mu     sync.Mutex
	next   uint64
	values []given[T] // the one that was asked for last is the last
}

type given[T any] struct {
	value  T
	number string
}

// number returns a text that names v among all values there ever were; another
// one where v was forgotten meanwhile.
func (r *recent[T]) number(v T) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.values, func(n given[T]) bool { return n.value == v })
	var found given[T]
	switch {
	case i >= 0:
		found = r.values[i]
		r.values = slices.Delete(r.values, i, i+1)
	default:
		r.next++
		found = given[T]{v, strconv.FormatUint(r.next, 10)}
	}
	if len(r.values) == recentLists {
		r.values = slices.Delete(r.values, 0, 1)
	}
	r.values = append(r.values, found)
	return found.number
}
