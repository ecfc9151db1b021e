package model

import (
	"container/list"
	"maps"
	"sync"
	"time"
	"weak"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/result"
)

// Offers keeps the offers that were made, so that offering hundreds of tools costs
// a request nothing. The zero value is ready; it is safe for concurrent use.
//
// A list that is offered twice is kept, within Bytes, for ten minutes after its last
// use. Lists that were offered once, such as the selection that one request makes,
// make room for one another only; they are put together from the plans of the lists
// that are kept.
type Offers struct {
	// Bytes is the most that is kept, about; 256 MiB if zero. The offer that was
	// used last is kept in any case.
	Bytes int64

	mu    sync.Mutex
	kept  map[offerKey]*list.Element // of *keptOffer
	order list.List                  // the longest unused first
	size  int64
	once  int                   // how many were used once
	of    map[*dialect.Plan]int // how many of those that are kept have a plan
	plans map[planKey]weak.Pointer[dialect.Plan]
	sweep int // the number of plans at which those that are gone are looked for
}

// An offerKey is a list in a dialect, with room for so many tools; 0 for any number.
type offerKey struct {
	tools   *dragoman.Tools
	dialect *dialect.Dialect
	room    int
	search  Search
}

// A planKey is what a plan follows from.
type planKey struct {
	pin     [32]byte
	name    string
	dialect *dialect.Dialect
}

type keptOffer struct {
	key   offerKey
	make  func() *offer // makes it once, also for those who ask at the same time
	made  *offer        // once it counts
	again bool          // it was used more than once
	used  time.Time
}

const (
	// maxOnce is the number of offers that are kept though they were used only once:
	// as many as give the lists of several doors a chance to be used again.
	maxOnce = 4
	// unused is how long an offer is kept that nobody uses.
	unused = 10 * time.Minute
	// toolCost is about what a tool of a list costs beside its plan and its definition.
	toolCost = 768
)

// get returns the offer of tools in a dialect, made now or before. The client brings
// that many tools of its own.
func (s *Offers) get(tools *dragoman.Tools, d *dialect.Dialect, clients int, search Search) *offer {
	room := d.Wire().MaxTools
	if room > 0 {
		room = max(room-clients, 0)
	}
	if tools.Len() == 0 || d.Wire().MaxTools > 0 && room == 0 {
		return noOffer
	}
	k := s.entry(offerKey{tools, d, room, search})
	o := k.make()
	s.count(k, o)
	return o
}

// entry returns the entry of a key, which may be a new one.
func (s *Offers) entry(key offerKey) *keptOffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if element := s.kept[key]; element != nil {
		k := element.Value.(*keptOffer)
		if !k.again {
			k.again = true
			s.once--
		}
		k.used = time.Now()
		s.order.MoveToBack(element)
		return k
	}
	if s.kept == nil {
		s.kept, s.of, s.plans = map[offerKey]*list.Element{}, map[*dialect.Plan]int{}, map[planKey]weak.Pointer[dialect.Plan]{}
	}
	k := &keptOffer{key: key, used: time.Now(), make: sync.OnceValue(func() *offer {
		return makeOffer(key.tools, key.dialect, key.room, key.search, func(t *dragoman.Tool) (*dialect.Plan, *dragoman.Problem) {
			return s.plan(t, key.dialect)
		})
	})}
	s.kept[key] = s.order.PushBack(k)
	s.once++
	s.evict()
	return k
}

// plan returns the plan of a tool: that of an offer which is kept, where there is
// one.
func (s *Offers) plan(t *dragoman.Tool, d *dialect.Dialect) (*dialect.Plan, *dragoman.Problem) {
	key := planKey{t.Pin, t.Name, d}
	if t.Pin == [32]byte{} {
		return d.Plan(*t)
	}
	s.mu.Lock()
	plan := s.plans[key].Value()
	s.mu.Unlock()
	if plan != nil {
		return plan, nil
	}
	plan, problem := d.Plan(*t)
	if plan != nil {
		s.mu.Lock()
		s.plans[key] = weak.Make(plan)
		s.mu.Unlock()
	}
	return plan, problem
}

// count adds the size of an offer that was made, and makes room for it.
func (s *Offers) count(k *keptOffer, o *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	element := s.kept[k.key]
	if element == nil || element.Value.(*keptOffer) != k || k.made != nil {
		return
	}
	k.made = o
	s.size += o.cost()
	for _, at := range o.places {
		if s.of[at.plan]++; s.of[at.plan] == 1 {
			s.size += planCost(at.plan)
		}
	}
	s.evict()
}

// Forget gives up all offers, for a program that is short of memory. They are made again as
// they are asked for.
func (s *Offers) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.kept)
	clear(s.of)
	clear(s.plans)
	s.order.Init()
	s.size, s.once, s.sweep = 0, 0, 0
}

// uncount takes away what count added.
func (s *Offers) uncount(o *offer) {
	s.size -= o.cost()
	for _, at := range o.places {
		if s.of[at.plan]--; s.of[at.plan] == 0 {
			delete(s.of, at.plan)
			s.size -= planCost(at.plan)
		}
	}
}

// evict forgets offers that nobody used for long, those that were used once beyond
// their number, and the longest unused ones beyond the size.
func (s *Offers) evict() {
	limit := s.Bytes
	if limit <= 0 {
		limit = 256 << 20
	}
	evicted := false
	var next *list.Element
	for e := s.order.Front(); e != nil; e = next {
		next = e.Next()
		k := e.Value.(*keptOffer)
		if next == nil || time.Since(k.used) < unused && (k.again || s.once <= maxOnce) && s.size <= limit {
			continue
		}
		s.order.Remove(e)
		delete(s.kept, k.key)
		if k.made != nil {
			s.uncount(k.made)
		}
		if !k.again {
			s.once--
		}
		evicted = true
	}
	if !evicted || len(s.plans) < s.sweep {
		return
	}
	defer func() { s.sweep = 2*len(s.plans) + 64 }()
	for key, plan := range s.plans {
		if plan.Value() == nil {
			delete(s.plans, key)
		}
	}
}

// cost returns about how many bytes an offer holds beside its plans.
func (o *offer) cost() int64 {
	n := o.tools.Len() * toolCost
	for _, part := range o.functions {
		n += len(part)
	}
	for _, name := range o.left {
		n += len(name)
	}
	return int64(n)
}

// planCost is about how many bytes a plan holds, with the definition that it was made of,
// which is about as long as what became of it.
func planCost(p *dialect.Plan) int64 { return int64(p.Size() + len(p.Function())) }

// read_more is offered only once something was cut: until then it would cost every
// request its description and tempt the model for nothing.

var readMoreOffers sync.Map // of offers by dialect

// readMore returns the tool as an offer of its own; nil where it is not to be
// offered.
func (d *Dialogue) readMore() *offer {
	if !d.More {
		return nil
	}
	return d.moreOffer()
}

// moreOffer returns the tool as an offer of its own, under another name where a tool of the
// client's has its own.
func (d *Dialogue) moreOffer() *offer {
	if d.more == nil {
		of := d.Client.dialect()
		o, ok := readMoreOffers.Load(of)
		if !ok {
			tools := dragoman.NewTools([]dragoman.Tool{result.ReadMoreTool()})
			o, _ = readMoreOffers.LoadOrStore(of, makeOffer(tools, of, 0, Search{}, planned(of)))
		}
		d.more = o.(*offer)
		if d.Request.Names[result.ReadMore] {
			taken := maps.Clone(d.Request.Names)
			if d.ours != nil {
				for t := range d.ours.all() {
					taken[t.Name] = true
				}
			}
			d.more = d.more.avoid(taken, of)
		}
	}
	return d.more
}

// tool returns the tool of ours that a model means by a name, with its plan.
func (d *Dialogue) tool(name string) (*dragoman.Tool, *dialect.Plan) {
	if t, plan := d.ours.find(name); t != nil {
		return t, plan
	}
	if o := d.readMore(); o != nil {
		return o.find(name)
	}
	return nil, nil
}
