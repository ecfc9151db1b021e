package responses

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/seal"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/memory"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// seals close for one caller what clients keep for us.
type seals struct {
	ring   *seal.Ring
	owner  string
	person string // behind the owner, as the request names them; empty for nobody
}

var encoding = base64.RawURLEncoding

// reasoningPrefix stands before what we sealed of what a model thought, so that what
// others sealed is known without trying.
const reasoningPrefix = "dg1."

// thought seals what an upstream wants back of what it thought.
func (s seals) thought(members []rawjson.Member) string {
	return reasoningPrefix + encoding.EncodeToString(s.ring.Close(seal.Reasoning, seal.Bind([]byte(s.owner)), object(members...), time.Time{}))
}

// openThought returns what [seals.thought] sealed.
func (s seals) openThought(sealed string) ([]rawjson.Member, bool) {
	encoded, ok := strings.CutPrefix(sealed, reasoningPrefix)
	if !ok {
		return nil, false
	}
	closed, err := encoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}
	plain, err := s.ring.Open(seal.Reasoning, seal.Bind([]byte(s.owner)), closed)
	if err != nil {
		return nil, false
	}
	o, err := rawjson.ParseObject(plain)
	if err != nil {
		return nil, false
	}
	return o.Members, true
}

// reasoning takes an item of what a model thought. What another provider sealed is of
// no use here.
func (h *history) reasoning(o *rawjson.Object) {
	sealed := stringOf(o, "encrypted_content")
	members, ok := h.seals.openThought(sealed)
	switch {
	case ok:
		h.turn.think(members)
	case sealed != "":
		h.leftOut()
	}
}

// ourCallSeal seals that a call was made as its item says, and answered so.
func (s seals) call(server, name, arguments, said string) string {
	return encoding.EncodeToString(s.ring.Close(seal.Item, s.boundCall(server, name, arguments, said), nil, time.Time{}))
}

func (s seals) boundCall(server, name, arguments, said string) []byte {
	return seal.Bind([]byte(s.owner), []byte(server), []byte(name), []byte(arguments), []byte(said))
}

// ourCall takes an item of a call of ours. One that is as we gave it is put to the model
// as what it was; any other is the client's own word.
func (h *history) ourCall(o *rawjson.Object) {
	if call, said, ok := h.sealedCall(o); ok {
		h.turn.ours(
			model.ChatCall(call.id, call.tool, rawjson.Quote(call.arguments)),
			model.ChatResult(call.id, rawjson.Quote(said)))
		return
	}
	h.turn.any, h.turn.more = true, true
	h.turn.next()
	h.turn.closed = append(h.turn.closed, model.ChatMessage("user", rawjson.Quote(h.claim(o))))
}

// sealedCall returns the call of ours that an item is, and what came of it; ok is false for
// one that is not as we gave it.
func (h *history) sealedCall(o *rawjson.Object) (call ourCall, said string, ok bool) {
	call = ourCall{id: stringOf(o, "id"), server: stringOf(o, "server_label"), name: stringOf(o, "name"), arguments: stringOf(o, "arguments")}
	said = saidOf(o)
	var closed []byte
	if sealed, err := rawjson.ParseObject(o.Get("dragoman")); err == nil {
		closed, _ = encoding.DecodeString(stringOf(sealed, "seal"))
		call.tool = stringOf(sealed, "tool")
	}
	if call.tool == "" {
		call.tool = flatten(call.server, call.name, false)
	}
	_, err := h.seals.ring.Open(seal.Item, h.seals.boundCall(call.server, call.name, call.arguments, said), closed)
	return call, said, err == nil
}

// claim words what a client says of a call that we did not seal.
func (h *history) claim(o *rawjson.Object) string {
	call := "The client of this conversation says that the tool " + stringOf(o, "name") + " of " + stringOf(o, "server_label") + " was called with " + stringOf(o, "arguments")
	if withoutResult(o) {
		return call + ". What it answered was not sent."
	}
	return call + " and answered: " + saidOf(o)
}

// saidOf returns what an item of a call of ours says that came of it.
func saidOf(o *rawjson.Object) string {
	if output, ok := rawjson.String(o.Get("output")); ok {
		return output
	}
	failure, err := rawjson.ParseObject(o.Get("error"))
	if err != nil {
		s, _ := rawjson.String(o.Get("error"))
		return s
	}
	if message := stringOf(failure, "message"); message != "" {
		return message
	}
	var texts []string
	parts, _ := rawjson.Elements(failure.Get("content"))
	for _, part := range parts {
		if p, err := rawjson.ParseObject(part); err == nil {
			texts = append(texts, stringOf(p, "text"))
		}
	}
	return strings.Join(texts, "\n")
}

// approvalPrefix stands before the id of a request for approval.
const approvalPrefix = "mcpr_"

// A consent is what a request for approval is about, as its id has it.
type consent struct {
	Call   string `json:"call"`
	Tool   string `json:"tool"` // as the model names it
	Server string `json:"server"`
	Name   string `json:"name"`
	Pin    []byte `json:"pin"`
	Digest []byte `json:"digest"` // of the arguments
	Person string `json:"person,omitempty"`
}

// ask returns the id of a request for approval of a call.
func (s seals) ask(c *memory.Call, tool string) string {
	w := c.Waiting
	sum := sha256.Sum256(w.Arguments)
	plain, err := json.Marshal(consent{Call: c.ID, Tool: tool, Server: w.Server, Name: w.Original, Pin: w.Pin, Digest: sum[:], Person: s.person})
	if err != nil {
		return "" // it always can
	}
	return approvalPrefix + encoding.EncodeToString(s.ring.Close(seal.Consent, seal.Bind([]byte(s.owner)), plain, time.Time{}))
}

// consent returns what the id of a request for approval is about. An id that is spelled in
// another way than ours is none: an approval is known to be used by its id.
func (s seals) consent(id string) (c consent, ok bool) {
	closed, err := encoding.DecodeString(strings.TrimPrefix(id, approvalPrefix))
	if err != nil || id != approvalPrefix+encoding.EncodeToString(closed) {
		return c, false
	}
	plain, err := s.ring.Open(seal.Consent, seal.Bind([]byte(s.owner)), closed)
	if err != nil {
		return c, false
	}
	return c, json.Unmarshal(plain, &c) == nil && !others(c.Person, s.person)
}
