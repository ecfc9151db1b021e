package recall

import (
	"slices"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A room is what the messages of a history are taken apart in. It is used again: a history of
// a thousand would have 300 KiB of it.
type room struct {
	objects []rawjson.Object
	members []rawjson.Member
	history history // with room for its lists
	used    int     // messages
}

const (
	usualMembers = 4    // that a message has
	maxPooled    = 8192 // messages; the room of more is not kept
)

var rooms = sync.Pool{New: func() any { return new(room) }}

// roomFor returns room for so many messages.
func roomFor(messages int) *room {
	r := rooms.Get().(*room)
	if len(r.objects) < messages {
		r.objects, r.members = make([]rawjson.Object, messages), make([]rawjson.Member, usualMembers*messages)
	}
	r.used = messages
	r.history.objects = slices.Grow(r.history.objects[:0], messages)[:messages]
	r.history.keys = slices.Grow(r.history.keys[:0], messages)[:messages]
	return r
}

// object returns the object of a message, without members.
func (r *room) object(i int) *rawjson.Object {
	r.objects[i].Members = r.members[usualMembers*i : usualMembers*i : usualMembers*(i+1)]
	return &r.objects[i]
}

// free keeps the room for another history, and nothing of this one.
func (r *room) free() {
	if len(r.objects) > maxPooled {
		return
	}
	clear(r.objects[:r.used])
	clear(r.members[:usualMembers*r.used])
	clear(r.history.objects)
	clear(r.history.keys)
	r.history = history{objects: r.history.objects, keys: r.history.keys}
	rooms.Put(r)
}
