package model

import (
	"container/list"
	"sync"
	"weak"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/result"
)

// Offers keeps the offers that were made, so that offering hundreds of tools costs
// a request nothing. The zero value is ready; it is safe for concurrent use.
//
// A list that is offered twice is kept, within Bytes; lists that were offered once,
// such as the selection that one request makes, are put together from the bytes of
// their plans and make room for one another only.
type Offers struct {
	// Bytes is the most that is kept, about; 64 MiB if zero.
	Bytes int64

	mu    sync.Mutex
	kept  map[offerKey]*list.Element // of *keptOffer
	order list.List                  // the longest unused first
	size  int64
	once  int // how many were used once
}

// An offerKey is a list, which never changes, in a dialect, with room for so many
// tools; 0 for any number. It does not keep the list from being forgotten.
type offerKey struct {
	first   weak.Pointer[dragoman.Tool]
	n       int
	dialect *dialect.Dialect
	room    int
}

type keptOffer struct {
	key   offerKey
	make  func() *offer // makes it once, also for those who ask at the same time
	size  int64
	again bool // it was used more than once
}

// maxOnce is the number of offers that are kept though they were used only once:
// as many as give the lists of several doors a chance to be used again.
const maxOnce = 4

// toolCost is about what a tool of an offer costs beside its function.
const toolCost = 1024

// get returns the offer of tools in a dialect, made now or before. The client brings
// that many tools of its own.
func (s *Offers) get(tools []dragoman.Tool, d *dialect.Dialect, clients int) *offer {
	room := d.Wire().MaxTools
	if room > 0 {
		room = max(room-clients, 0)
	}
	if len(tools) == 0 || d.Wire().MaxTools > 0 && room == 0 {
		return makeOffer(nil, d, 0)
	}
	k := s.entry(offerKey{weak.Make(&tools[0]), len(tools), d, room}, tools)
	o := k.make()
	s.count(k, o)
	return o
}

// entry returns the entry of a key, which may be a new one.
func (s *Offers) entry(key offerKey, tools []dragoman.Tool) *keptOffer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if element := s.kept[key]; element != nil {
		k := element.Value.(*keptOffer)
		if !k.again {
			k.again = true
			s.once--
		}
		s.order.MoveToBack(element)
		return k
	}
	if s.kept == nil {
		s.kept = map[offerKey]*list.Element{}
	}
	k := &keptOffer{key: key, make: sync.OnceValue(func() *offer { return makeOffer(tools, key.dialect, key.room) })}
	s.kept[key] = s.order.PushBack(k)
	s.once++
	s.evict()
	return k
}

// count adds the size of an offer that was made, and makes room for it.
func (s *Offers) count(k *keptOffer, o *offer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[k.key] == nil || s.kept[k.key].Value != any(k) || k.size > 0 {
		return
	}
	k.size = o.size()
	s.size += k.size
	s.evict()
}

// evict forgets offers of lists that are gone, those that were used once beyond
// their number, and the longest unused ones beyond the size.
func (s *Offers) evict() {
	limit := s.Bytes
	if limit <= 0 {
		limit = 64 << 20
	}
	var next *list.Element
	for e := s.order.Front(); e != nil; e = next {
		next = e.Next()
		k := e.Value.(*keptOffer)
		if k.key.first.Value() == nil || !k.again && s.once > maxOnce || s.size > limit {
			s.order.Remove(e)
			delete(s.kept, k.key)
			s.size -= k.size
			if !k.again {
				s.once--
			}
		}
	}
}

// size returns about how many bytes an offer holds.
func (o *offer) size() int64 {
	n := len(o.order) * toolCost
	for _, part := range o.functions {
		n += len(part)
	}
	for _, name := range o.left {
		n += len(name)
	}
	return int64(n)
}

// read_more is offered only once something was cut: until then it would cost every
// request its description and tempt the model for nothing.

var readMoreOffers sync.Map // of offers by dialect

// readMore returns the tool as an offer of its own; nil where it is not to be
// offered.
func (d *Dialogue) readMore() *offer {
	if !d.More || d.Request.Names[result.ReadMoreTool().Name] {
		return nil
	}
	of := d.Client.dialect()
	if o, ok := readMoreOffers.Load(of); ok {
		return o.(*offer)
	}
	o, _ := readMoreOffers.LoadOrStore(of, makeOffer([]dragoman.Tool{result.ReadMoreTool()}, of, 0))
	return o.(*offer)
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
