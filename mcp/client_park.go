package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman"
)

// Bounds of the calls of one connection that wait for answers. They bound what a
// connection keeps; that no caller takes the room of the others is seen to where
// callers are known.
const (
	maxParked = 64
	parkLife  = 5 * time.Minute
)

// park puts the questions of a legacy server to whoever made the call, and keeps
// the call until the answers come. It returns nil when there is nothing to ask
// any more, and when there is no room: then the questions are cancelled, and the
// call goes on.
func (f *pendingCall) park() *dragoman.Asks {
	asks := &dragoman.Asks{Held: true, Expires: time.Now().Add(parkLife)}
	var put []*question
	f.mu.Lock()
	for _, q := range f.questions {
		if !q.put {
			q.put = true
			put = append(put, q)
			asks.Questions = append(asks.Questions, dragoman.Question{Key: q.key, Kind: q.kind, Server: f.c.o.Label, Params: q.params})
		}
	}
	if put != nil {
		f.withdrawn = make(chan struct{})
		asks.Withdrawn = f.withdrawn
	}
	f.mu.Unlock()
	if put == nil {
		return nil
	}
	key := strconv.FormatInt(f.c.parkings.Add(1), 10)
	f.timeout.stop()
	if !f.c.parked.Park("", key, f, parkLife) {
		f.c.log.Warn("too many calls of the MCP server wait for answers: a question was cancelled")
		f.reply(&dragoman.Answers{})
		return nil
	}
	asks.State = append(append([]byte{stateParked}, f.c.id[:]...), key...)
	return asks
}

// resume returns the call that was parked with a state, and has answered its
// questions. It returns nil when no such call is here: it was parked on
// another connection, by another process, or too long ago.
func (c *Client) resume(state []byte, a *dragoman.Answers) *pendingCall {
	key, ok := bytes.CutPrefix(state, c.id[:])
	if !ok {
		return nil
	}
	f, ok := c.parked.Take(string(key))
	if !ok {
		return nil
	}
	if a.Gone {
		f.abandon()
	} else {
		f.reply(a)
	}
	return f
}

// reply answers the questions that were put, and lets the time run again.
func (f *pendingCall) reply(a *dragoman.Answers) {
	var put []*question
	f.mu.Lock()
	waiting := f.questions[:0:0]
	for _, q := range f.questions {
		if q.put {
			put = append(put, q)
		} else {
			waiting = append(waiting, q)
		}
	}
	f.questions = waiting
	f.noneWaits()
	f.mu.Unlock()
	f.timeout.start()
	for _, q := range put {
		f.answer(q, json.RawMessage(a.Replies[q.key]))
	}
}

// abandon ends a call whose questions nobody will answer. The server is told that
// the call is cancelled, and then that they are: a server that heard of them first
// could go on with the call.
func (f *pendingCall) abandon() { f.cancel(errGone) }
