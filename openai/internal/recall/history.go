package recall

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A history is the client's own, while it is made whole.
type history struct {
	messages []json.RawMessage
	objects  []*rawjson.Object
	keys     [][]string       // for each message, under which its turn may be kept
	broken   map[int][]string // for messages that a turn without an end may be behind, under which it may be kept
	within   map[int][]border // for messages of a person's, where in them turns without an end may be
	taken    map[int][]string // for messages of a person's, under which turns may be kept that they were taken back in front of them
	end      border           // the last one of the last message, if a person's, as one within which others may go on
	turns    map[string]*memory.Turn
	results  map[made]*rawjson.Object // what answers calls; nil until it is needed
	room     *room                    // of the objects, which end with the history
}

// made names a call of a message.
type made struct {
	by *rawjson.Object
	id string
}

// readHistory takes the messages of the request apart and finds the turns that
// belong to them.
func (t *Thread) readHistory(ctx context.Context) (*history, error) {
	h, store := newHistory(t.Request.Messages), t.Memory
	spoke, err := h.parse()
	if err != nil {
		return nil, err
	}
	keyed := func() bool {
		return len(t.Request.Known) > 0 || store != nil && (!spoke || store.Any(ctx, t.Request.Owner) || t.Request.From != "" && store.Any(ctx, t.Request.From))
	}
	any, follows := keyed(), store != nil && t.Running != nil && t.Request.Identified
	keys, alike := t.historyKeys(h, any || follows)
	if err := t.follow(ctx, h); err != nil {
		return nil, err
	}
	if !any && follows {
		any = keyed() // what ran until now is kept since
	}
	renewed := !t.Request.Retried && !t.Request.Again
	if !renewed {
		keys = append(keys, requestKey(t.Request.Digest))
	} else if any && store != nil {
		// A request that is new ends what its like may claim.
		if err := store.Drop(ctx, t.Request.Owner, requestKey(t.Request.Digest)); err != nil {
			return nil, fmt.Errorf("forgetting a request: %w", err)
		}
	}
	if a := t.Request.Answers; a != nil {
		for _, id := range append([]string{a.ID}, a.IDs...) {
			keys = append(keys, AskKey(id))
		}
	}
	if any && len(keys) > 0 && store != nil {
		if h.turns, err = store.Find(ctx, t.Request.Owner, keys); err != nil {
			return nil, fmt.Errorf("finding what is remembered: %w", err)
		}
		t.known = t.keptBefore(h)
		if err := t.branch(ctx, h); err != nil {
			return nil, err
		}
		renewed = t.takeBack(ctx, h) || renewed
	}
	if renewed { // so does one that is asked otherwise, and ends with the same
		last := len(h.messages) - 1
		for _, key := range append(slices.Clone(h.broken[last]), h.end.keys...) {
			if h.turns[key] == nil {
				continue
			}
			if err := store.Drop(ctx, t.Request.Owner, key); err != nil {
				return nil, fmt.Errorf("forgetting a turn: %w", err)
			}
		}
	}
	h.know(t.Request.Known, append(keys, alike...))
	return h, nil
}

// follow waits for what was done for requests in whose histories this one goes on and whose
// clients have left: a person says something while a tool runs, and an agent breaks off and asks
// again at once, before the server of the tool is told. The model would make the call once more.
func (t *Thread) follow(ctx context.Context, h *history) error {
	last := len(h.messages) - 1
	var before []string
	for i, keys := range h.broken {
		if i < last {
			before = append(before, keys...)
		}
	}
	for _, borders := range h.within {
		for _, b := range borders {
			before = append(before, b.keys...)
		}
	}
	before = append(before, t.front...)
	for _, owner := range []string{t.Request.Owner, t.Request.From} {
		if err := t.Running.Await(ctx, owner, before); err != nil {
			return err
		}
	}
	own := last
	if own > 0 && h.keys[own] != nil {
		own-- // it asks for the rest of that answer
	}
	t.behind = slices.Concat(h.broken[own], h.end.keys, t.front)
	return nil
}

// mark has those who go on behind this request wait for it where its client leaves, from its first
// calls on: there is nothing to wait for while the model only talks.
func (t *Thread) mark(ctx context.Context) {
	if len(t.behind) == 0 {
		return
	}
	end, kept := t.finished, t.Running.Mark(ctx, t.Request.Owner, t.behind)
	t.finished, t.behind = func() { end(); kept() }, nil
}

// branch finds turns that are not known of this conversation in the one that it was branched
// off from, and keeps them as its own: what is branched off from this one finds them here. A
// request that ends as one of the other conversation's did is another one.
func (t *Thread) branch(ctx context.Context, h *history) error {
	if t.Request.From == "" {
		return nil
	}
	last := len(h.messages) - 1
	var keys []string
	for i := range last {
		for _, key := range append(slices.Clone(h.keys[i]), h.broken[i]...) {
			if h.turns[key] == nil {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := t.Memory.Find(ctx, t.Request.From, keys)
	if err != nil {
		return fmt.Errorf("finding what is remembered: %w", err)
	}
	if h.turns == nil {
		h.turns = map[string]*memory.Turn{}
	}
	of := map[*memory.Turn][]string{}
	for _, key := range keys {
		if turn := found[key]; turn != nil && h.turns[key] == nil {
			h.turns[key], of[turn] = turn, append(of[turn], key)
		}
	}
	for turn, keys := range of {
		t.keep(ctx, keys, turn)
	}
	return nil
}

func newHistory(messages []json.RawMessage) *history {
	room := roomFor(len(messages))
	h := &room.history
	h.messages, h.room = messages, room
	return h
}

// parse takes the messages apart, and reports whether the assistant said one of them.
// Those have keys from then on, if none yet.
func (h *history) parse() (spoke bool, err error) {
	for i, message := range h.messages {
		o := h.room.object(i)
		if err := o.Parse(message); err != nil {
			return false, model.Invalid(fmt.Sprintf("messages.%d", i), "The message is malformed.")
		}
		h.objects[i] = o
		if role, _ := rawjson.String(o.Get("role")); role == "assistant" {
			spoke, h.keys[i] = true, []string{} // not nil
		}
	}
	return spoke, nil
}

// historyKeys gives the messages the keys under which their turns may be kept, and returns
// all of them; alike are further ones, of histories that may be somebody else's, too.
// Without any, nothing is kept or known of the caller, and only calls have keys.
func (t *Thread) historyKeys(h *history, any bool) (keys, alike []string) {
	prefix := newDigest()
	defer prefix.free()
	keys = []string{} // of which each message has a part
	for i, o := range h.objects {
		if any {
			keys = t.historyBorders(keys, h, i, prefix)
			prefix.saying(o, t.said(i))
		}
		from := len(keys)
		if h.keys[i] == nil {
			if any && prefix.begun && t.named(prefix) && h.unanswered(i) && !(isTool(o) && t.silent(i+1)) {
				keys = t.unendedKeys(keys, prefix)
				if h.broken == nil {
					h.broken = map[int][]string{}
				}
				h.broken[i] = keys[from:len(keys):len(keys)]
			}
			continue
		}
		keys = appendCallKeys(keys, o)
		border := len(keys)
		if any && t.proves(prefix) {
			keys = t.prefixKeys(keys, prefix)
		}
		h.keys[i] = keys[from:len(keys):len(keys)]
		if any && len(t.Request.Known) > 0 {
			key := prefix.bareKey()
			h.keys[i], alike = slices.Insert(h.keys[i], border-from, key), append(alike, key)
		}
	}
	return keys, alike
}

// silent reports whether nothing is said in a message of a person's, in which an agent does
// nothing but remind of something. Behind what tools said both are one place.
func (t *Thread) silent(i int) bool {
	said := t.said(i)
	return said != nil && len(said) == 0
}

// historyBorders appends the keys of borders within a message, of what is in front of it.
func (t *Thread) historyBorders(keys []string, h *history, i int, before *digest) []string {
	pieces, is := t.Request.Pieces[i]
	last := i == len(h.objects)-1
	if !is || !last && len(pieces.Parts) < 2 && t.Request.TakesBack == "" || !t.named(before) {
		return keys
	}
	all := t.borders(before, pieces)
	if len(all) == 0 {
		return keys
	}
	end := all[len(all)-1]
	if last {
		t.front = t.frontOf(before)
		h.end, keys = end, slices.Concat(keys, end.keys, t.front)
	}
	if taken := t.frontKeys(end.keys); taken != nil {
		for _, b := range all[:len(all)-1] {
			taken = append(taken, t.frontKeys(b.keys)...) // the client has written on in it since
		}
		if h.taken == nil {
			h.taken = map[int][]string{}
		}
		h.taken[i], keys = taken, append(keys, taken...)
	}
	if all = all[:len(all)-1]; len(all) == 0 {
		return keys
	}
	if h.within == nil {
		h.within = map[int][]border{}
	}
	h.within[i] = all
	for _, b := range all {
		keys = append(keys, b.keys...)
	}
	return keys
}

// know adds turns that came with the request, where nothing else is known under their
// keys. By a visible history they are known better than by memory, which may have another
// one's that looks alike.
func (h *history) know(known map[string]*memory.Turn, keys []string) {
	if len(known) == 0 {
		return
	}
	for i, name := range spelled(keys) {
		key := keys[i]
		if turn := known[name]; turn != nil && (h.turns[key] == nil || strings.HasPrefix(key, prefixed)) {
			if h.turns == nil {
				h.turns = map[string]*memory.Turn{}
			}
			h.turns[key] = turn
		}
	}
}

// spelled returns keys as they are with turns that clients' halves keep themselves: in
// documents, which are JSON and take no digest as it is.
func spelled(keys []string) []string {
	all := slices.Clone(keys)
	for i, key := range all {
		for _, kind := range []string{prefixed, requested} {
			if digest, ok := strings.CutPrefix(key, kind); ok {
				all[i] = kind + hex.EncodeToString([]byte(digest))
			}
		}
	}
	return all
}

// appendCallKeys appends the keys of the calls of a message whose ids we made.
func appendCallKeys(keys []string, o *rawjson.Object) []string {
	_ = rawjson.EachElement(o.Get("tool_calls"), func(call json.RawMessage) { // no list of ids: this is done for each message of each request
		literal := rawjson.Find(call, "id")
		if len(literal) < len(read) || !bytes.HasPrefix(bytes.TrimPrefix(literal[1:], []byte(likeOpenAI)), []byte(ours)) && bytes.IndexByte(literal, '\\') < 0 {
			return // it is somebody else's
		}
		if id, _ := rawjson.String(literal); Names(id) {
			keys = append(keys, CallKey(id))
		}
	})
	return keys
}

// callIDs returns the ids of the calls of a message.
func callIDs(o *rawjson.Object) []string {
	calls, err := rawjson.Elements(o.Get("tool_calls"))
	if err != nil {
		return nil
	}
	ids := make([]string, len(calls))
	for i, raw := range calls {
		ids[i], _ = rawjson.String(rawjson.Find(raw, "id"))
	}
	return ids
}

// turn returns what we keep of the turn that ended with a message; nil when that is
// nothing. A turn that is lost and still open must not go on, since nobody knows
// what to do again; one that ended long ago has only lost the model's memory of its
// tools.
func (h *history) turn(i int) (*memory.Turn, error) {
	lost := false
	for _, key := range h.keys[i] {
		if t := h.turns[key]; t != nil && !t.Ambiguous {
			return t, nil
		}
		lost = lost || strings.HasPrefix(key, CallKey(WroteID)) || strings.HasPrefix(key, CallKey(wrote))
	}
	if lost {
		return nil, h.lost(i)
	}
	return nil, nil
}

// unanswered reports whether a message of the client's may be the last one of a request whose
// answer broke off: what stands behind it is no result and calls nothing.
func (h *history) unanswered(i int) bool {
	if i+1 == len(h.objects) {
		return true
	}
	next := h.objects[i+1]
	calls, _ := rawjson.Elements(next.Get("tool_calls"))
	return !isTool(next) && len(calls) == 0
}

// brokenOff returns what the model said and called of a turn that broke off behind a message,
// as far as the client has not got it; nil for none. Where the turn was answered after all,
// that tells all of it.
func (h *history) brokenOff(i int) *memory.Turn {
	if i+1 == len(h.objects) {
		return nil
	}
	for _, key := range h.broken[i] {
		if t := h.turns[key]; t != nil && !t.Ambiguous {
			if answer, err := h.turn(i + 1); answer != nil || err != nil {
				return nil
			}
			if h.keys[i+1] != nil && !begins(t.Text, contentText(h.objects[i+1].Get("content"))) {
				return nil // an answer of its own: of another conversation that is called the same
			}
			return t
		}
	}
	return nil
}

// begins reports whether a text begins with what a client kept of it, which may be less, and
// have other spaces between the texts of two messages.
func begins(text, kept string) bool {
	dense := func(s string) string { return strings.Join(strings.Fields(s), "") }
	return strings.HasPrefix(dense(text), dense(kept))
}

// lost returns the error of a turn that is lost and ended with a message, where the turn is
// still open.
func (h *history) lost(i int) error {
	if slices.ContainsFunc(h.objects[i+1:], func(o *rawjson.Object) bool { return !isTool(o) }) {
		return nil
	}
	return &model.Error{
		Status: http.StatusBadRequest, Type: model.TypeInvalidRequest, Code: model.CodeTurnExpired, Param: "messages",
		Message: "What tools did in this turn is not remembered any more, and they may have changed something. Start the turn anew from its user message.",
	}
}

// spread returns the messages of the client's that are the open one of a turn, of which the
// first is at i, and where they end, with the results behind them. There are several where
// the client puts each result behind its call; some say the message's text with each.
func (h *history) spread(i int, open *memory.Message) (now []*rawjson.Object, end int) {
	now = h.objects[i : i+1 : i+1]
	var left map[string]bool // calls of the client's that are in none of them
	for end = i; end+1 < len(h.objects); end++ {
		o := h.objects[end+1]
		if isTool(o) {
			continue
		}
		ids := callIDs(o)
		if len(ids) == 0 || saysMore(o, now) {
			break
		}
		if left == nil {
			left = map[string]bool{}
			for k := range open.Calls {
				left[open.Calls[k].Client] = !open.Calls[k].Ours()
			}
			for _, id := range callIDs(now[0]) {
				delete(left, id)
			}
		}
		if slices.ContainsFunc(ids, func(id string) bool { return !left[id] }) {
			break
		}
		for _, id := range ids {
			delete(left, id)
		}
		now = append(now, o)
	}
	return now, end
}

// saysMore reports whether a message says something else than those before it.
func saysMore(o *rawjson.Object, now []*rawjson.Object) bool {
	text := contentText(o.Get("content"))
	if text == "" {
		return false
	}
	said := contentText(contentOf(now))
	return said != "" && said != text
}

func isTool(o *rawjson.Object) bool {
	role, _ := rawjson.String(o.Get("role"))
	return role == "tool"
}

// result returns the client's message that answers a call; nil for none.
func (h *history) result(call made) *rawjson.Object {
	if h.results == nil { // once, however many turns are reopened
		h.findResults()
	}
	return h.results[call]
}

// findResults finds what answers calls: each result belongs to the last message before it
// that made its call, since a client may have a turn twice. Where the client answered a call
// with several items, all of them are in its result.
func (h *history) findResults() {
	h.results = map[made]*rawjson.Object{}
	last, at := map[string]*rawjson.Object{}, map[made][]int{}
	for i, o := range h.objects {
		if isTool(o) {
			id, _ := rawjson.String(o.Get("tool_call_id"))
			call := made{last[id], id}
			h.results[call], at[call] = o, append(at[call], i)
			continue
		}
		for _, id := range callIDs(o) {
			last[id] = o
		}
	}
	for call, places := range at {
		if len(places) == 1 {
			continue
		}
		var all model.Items
		for _, i := range places {
			if items, ok := model.ItemsOf(h.messages[i]); ok {
				all.Items = append(all.Items, items.Items...)
			}
		}
		if len(all.Items) > 0 {
			answer := h.results[call].Clone()
			all.Put(answer)
			h.results[call] = answer
		}
	}
}
