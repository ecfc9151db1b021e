package recall

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// A digest is a hash of parts whose borders count.
type digest struct {
	hash.Hash
	front    hash.Hash // of the system messages in front of all others
	tail     hash.Hash // from the last id of ours on
	spoken   hash.Hash // what people and the model say, from the first message on in which an agent reminds of something; nil till then
	buf      []byte    // what is to be hashed, so that short parts cost little
	room     [256]byte
	texts    []byte  // room for texts with escapes
	calls    [1]byte // how many a message has, as it is hashed
	weight   int     // how much text of people and models is in it, in bytes
	led      bool    // front has something
	begun    bool    // what is in front is over
	answered bool    // the last message is what a tool said, with what an agent reminds of behind it
	ours     bool    // an id of a call is in it that we made for this conversation alone: tail has something
}

// digests are used again.
var digests = sync.Pool{New: func() any { return &digest{Hash: sha256.New(), front: sha256.New(), tail: sha256.New()} }}

// newDigest returns an empty digest, which may be let go of with [digest.free].
func newDigest() *digest {
	d := digests.Get().(*digest)
	d.Reset()
	d.front.Reset()
	d.buf, d.spoken, d.weight, d.led, d.begun, d.answered, d.ours = d.room[:0], nil, 0, false, false, false, false
	return d
}

func (d *digest) free() {
	if cap(d.texts) > maxTexts {
		d.texts = nil
	}
	digests.Put(d)
}

// maxTexts is how much room for texts is kept for the next digest, in bytes.
const maxTexts = 64 << 10

func (d *digest) part(b []byte) {
	d.buf = append(binary.LittleEndian.AppendUint64(d.buf[:0], uint64(len(b))), b[:min(len(b), 240)]...)
	d.add(d.buf)
	if len(b) > 240 {
		d.add(b[240:])
	}
}

func (d *digest) text(s string) {
	d.buf = append(binary.LittleEndian.AppendUint64(d.buf[:0], uint64(len(s))), s[:min(len(s), 240)]...)
	d.add(d.buf)
	if len(s) > 240 {
		d.add([]byte(s[240:]))
	}
}

// add adds bytes as they are.
func (d *digest) add(b []byte) {
	d.Write(b)
	if d.ours {
		d.tail.Write(b)
	}
	if d.spoken != nil {
		d.spoken.Write(b)
	}
}

func (d *digest) sum() string { return string(d.Sum(d.buf[:0])) }

// wholeKey is the key with the system messages in front: see [digest.bareKey].
func (d *digest) wholeKey() string {
	return string(d.front.Sum(d.Sum(append(d.buf[:0], prefixed...))))
}

// back ends a message in front.
func (d *digest) back() { d.Hash, d.front = d.front, d.Hash }

// message adds what matters of a message. Clients send messages back with members
// dropped, added, null or in another order; what the model reads of them stays the
// same.
func (d *digest) message(o *rawjson.Object) { d.saying(o, nil) }

// saying adds a message with what a person says in it; nil for all that stands in it. What is
// spoken has neither what tools said, in which Claude Code reminds some models, nor a message
// behind that in which it does nothing but remind others.
func (d *digest) saying(o *rawjson.Object, said []byte) {
	if said != nil && bytes.Equal(said, contentIn(o.Get("content"), &d.texts)) {
		said = nil
	}
	if said != nil && d.spoken == nil {
		d.spoken = cloned(d.Hash)
	}
	role, _ := rawjson.String(o.Get("role"))
	system, tool := role == "system" || role == "developer", role == "tool"
	spoken, silent := d.spoken, d.answered && said != nil && len(said) == 0
	d.answered = tool || silent
	if !system {
		d.begun = true
	}
	if system && !d.begun {
		d.led = true
		d.Hash, d.front = d.front, d.Hash
		defer d.back()
	}
	if silent {
		d.spoken = nil
	}
	d.text(role)
	d.literal(o.Get("tool_call_id"))
	text := contentIn(o.Get("content"), &d.texts)
	if said != nil || tool {
		d.spoken = nil
	}
	if d.part(text); !system { // what is said by it is the same for everybody
		d.weight += len(text)
	}
	if !silent {
		d.spoken = spoken
	}
	if said != nil && !silent {
		d.speak(said)
	}
	d.calls[0] = 0
	_ = rawjson.EachElement(o.Get("tool_calls"), func(raw json.RawMessage) {
		d.calls[0]++
		d.call(raw)
	})
	d.part(d.calls[:])
	d.spoken = spoken
}

// speak adds a part to what is spoken alone.
func (d *digest) speak(said []byte) {
	whole, ours := d.Hash, d.ours
	d.Hash, d.spoken, d.ours = d.spoken, nil, false
	d.part(said)
	d.Hash, d.spoken, d.ours = whole, d.Hash, ours
}

// cloned returns a copy of a hash of SHA-256.
func cloned(h hash.Hash) hash.Hash {
	clone, err := h.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // it can be cloned
	}
	return clone
}

// call adds what matters of a call.
func (d *digest) call(raw json.RawMessage) {
	if rawjson.Kind(raw) != '{' {
		return
	}
	id, _ := rawjson.Text(rawjson.Find(raw, "id"), &d.texts)
	if minted(id) {
		d.ours = true
		d.tail.Reset()
	}
	d.part(id)
	for _, kind := range [...]string{"function", "custom"} {
		if inner := rawjson.Find(raw, kind); rawjson.Kind(inner) == '{' {
			d.literal(rawjson.Find(inner, "name"))
			d.part(argumentIn(rawjson.Find(inner, "arguments"), &d.texts))
			d.part(argumentIn(rawjson.Find(inner, "input"), &d.texts))
		}
	}
}

// literal adds the text of a literal; that of no text for anything else.
func (d *digest) literal(raw json.RawMessage) {
	text, _ := rawjson.Text(raw, &d.texts)
	d.part(text)
}

// enough is how much text a visible history must have to be found by it, in bytes,
// where the request does not say whose conversation it is. Behind one key may be
// many people: short questions with short answers are the same for several of them,
// and what a tool said to one must not reach another.
const enough = 200

// named reports whether nothing but one conversation can have a visible history: its
// request says which one it is, or a call in it has an id that we made for it.
func (t *Thread) named(d *digest) bool { return t.Request.Identified || d.ours }

// proves reports whether a visible history shows whose it is.
func (t *Thread) proves(d *digest) bool { return t.named(d) || d.weight >= enough }

// prefixKeys appends the keys under which the turn is kept that ends a visible history.
// Agents write into the system message in front what is different with each turn, such as
// the time or the state of a repository: where something else names the conversation, the
// turn is found without it, too. First it is looked for with it, since several agents of one
// conversation, or of one person, may say the same. So it is with what they remind of, which
// Claude Code says otherwise, and in other places, to another model. Agents also change what is long past: they
// clear it, put a summary in its place, or say in it where they run now. Behind an id of ours the
// turn is found without all that.
func (t *Thread) prefixKeys(keys []string, d *digest) []string {
	if d.led {
		keys = append(keys, d.wholeKey())
	}
	if !d.led || t.named(d) {
		keys = append(keys, d.bareKey())
	}
	if d.ours {
		keys = append(keys, d.tailKey())
	}
	if d.spoken != nil && t.named(d) {
		keys = append(keys, d.spokenKey())
	}
	return keys
}

// unendedKeys appends the keys under which the turn is kept that broke off, or may have, behind a
// visible history. A summary takes the place of what was done, and leaves people's messages as
// they were: what is kept behind one of those is of the window that it was said in.
func (t *Thread) unendedKeys(keys []string, d *digest) []string {
	from := len(keys)
	keys = t.prefixKeys(keys, d)
	if t.Request.Window == "" {
		return keys
	}
	for i, key := range keys[from:] {
		keys[from+i] = keyOf(windowed, key, t.Request.Window)
	}
	return keys
}

// keyOf returns the key of a kind that stands for another key within what has the name.
func keyOf(kind, key, name string) string {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write([]byte(name))
	return string(h.Sum([]byte(kind)))
}

// tailKey is the key from the last id of ours on, which nothing else has.
func (d *digest) tailKey() string { return string(d.tail.Sum(append(d.buf[:0], tailed...))) }

// bareKey is the key without the system messages in front, for who names the conversation,
// as by the id of a response.
func (d *digest) bareKey() string { return string(d.Sum(append(d.buf[:0], prefixed...))) }

// spokenKey is the key of what people and the model say.
func (d *digest) spokenKey() string { return string(d.spoken.Sum(append(d.buf[:0], prefixed...))) }

// Digest is the digest of a request: of its members in their order, but for those that say
// how the answer is to come. Claude Code asks without a stream for what failed in one, and
// where that is a 400 once more without display in thinking, which an API may not know.
func Digest(request *rawjson.Object) string {
	d := newDigest()
	defer d.free()
	for _, m := range request.Members {
		if m.Name == "stream" || m.Name == "stream_options" || m.Name == "thinking" {
			continue
		}
		d.text(m.Name)
		d.part(m.Value)
	}
	return d.sum()
}

// digestOf is the digest of the first messages of the history of the request, as the client
// sent it.
func (t *Thread) digestOf(messages []json.RawMessage) *digest {
	d := newDigest()
	o := new(rawjson.Object)
	for i, m := range messages {
		if i == 0 {
			m = t.first
		}
		if err := o.Parse(m); err == nil {
			d.saying(o, t.said(i))
		}
	}
	return d
}

// said is what a person says in a message of the request; nil for one that is no person's.
func (t *Thread) said(i int) []byte {
	if pieces, is := t.Request.Pieces[i]; is {
		return pieces.said()
	}
	return nil
}

// visibleDigest is the digest of the history as the client will send it next time:
// its own messages and our answer, of which it has seen a text and the calls of a
// message that are its own.
func (t *Thread) visibleDigest(seen string, open *memory.Message) *digest {
	d := t.digestOf(t.asked())
	answer := rawjson.Object{}
	answer.Set("role", rawjson.Quote("assistant"))
	answer.Set("content", rawjson.Quote(t.wholeText(seen)))
	if open != nil {
		var calls []json.RawMessage
		for i := range open.Calls {
			if !open.Calls[i].Ours() {
				calls = append(calls, Visible(&open.Calls[i]))
			}
		}
		answer.Set("tool_calls", rawjson.AppendArray(nil, calls))
	}
	d.message(&answer)
	return d
}

// asked are the messages of the client's that what it is told of its turn stands behind.
func (t *Thread) asked() []json.RawMessage {
	messages := t.Request.Messages
	if t.begun != nil {
		return messages[:len(messages)-1]
	}
	return messages
}

// wholeText is all that was said in the turn, of which the client has seen a text in this answer.
func (t *Thread) wholeText(seen string) string {
	if t.begun == nil {
		return seen
	}
	return strings.Join(slices.DeleteFunc([]string{t.begun.text, seen}, func(s string) bool { return s == "" }), "\n\n")
}

// hidden are the messages of the turn that the client does not see as they are.
func (t *Thread) hidden() []json.RawMessage {
	if t.begun == nil {
		return t.ofRequest()
	}
	return append(slices.Clip(t.begun.hidden), t.ofRequest()...)
}

// ofRequest are those that belong to this very request.
func (t *Thread) ofRequest() []json.RawMessage {
	if t.earlier == nil {
		return t.Dialogue.Hidden()
	}
	return slices.Concat(t.earlier, t.Dialogue.Hidden())
}

// contentText returns a message's content as text; content of several parts, or of
// parts that are no text, in its raw form.
func contentText(raw json.RawMessage) string {
	var room []byte
	return string(contentIn(raw, &room))
}

// contentIn is contentText in the message itself, or in room.
func contentIn(raw json.RawMessage, room *[]byte) []byte {
	if text, ok := rawjson.Text(raw, room); ok {
		return text
	}
	if rawjson.IsNull(raw) {
		return nil
	}
	n, only := 0, json.RawMessage(nil)
	err := rawjson.EachElement(raw, func(part json.RawMessage) { n, only = n+1, part })
	if err == nil && n == 1 {
		if text, ok := rawjson.Text(rawjson.Find(only, "text"), room); ok {
			return text
		}
	}
	return raw
}

// argumentText returns arguments as text: they should be a string, but some clients
// send the object itself.
func argumentText(raw json.RawMessage) string {
	var room []byte
	return string(argumentIn(raw, &room))
}

// argumentIn is argumentText in the message itself, or in room.
func argumentIn(raw json.RawMessage, room *[]byte) []byte {
	if text, ok := rawjson.Text(raw, room); ok || rawjson.IsNull(raw) {
		return text
	}
	return raw
}
