package mail

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// answerLife is how long a question, and an answer, wait for their reader.
const answerLife = time.Minute

// aliveEvery is how often a process looks whether the other one is alive.
const aliveEvery = nodes.Lease / 3

// The first byte of a question says what it is, and of an answer what became of it.
const (
	asks   = 'a'
	ends   = 'e' // nobody waits for the answer any more
	fine   = 'f'
	failed = 't' // the answer is too large
	none   = 'n' // there is none: it was given up
)

// Ask sends a message to a node, and returns what [Office.Answer] answers there. [ErrGone]
// says that the node has ended, has given it up, or has nobody for the key: what it did of
// it nobody knows.
// When ctx ends, so does what is done there.
func (o *Office) Ask(ctx context.Context, m Message) ([]byte, error) {
	key := "answer " + rand.Text()
	got := make(chan []byte, 1)
	defer o.Hold(key, func(m Message) {
		select {
		case got <- m.Body:
		default:
		}
	})()
	question := m
	question.Body = letter(asks, o.Node(), key, m.Body)
	if err := o.Send(ctx, question, answerLife); err != nil {
		return nil, err
	}
	looks := time.NewTicker(aliveEvery)
	defer looks.Stop()
	for dead := false; ; {
		select {
		case body := <-got:
			switch {
			case len(body) > 0 && body[0] == fine:
				return body[1:], nil
			case len(body) > 0 && body[0] == none:
				return nil, ErrGone
			}
			return nil, ErrTooLarge
		case <-looks.C:
			if dead { // what it had answered would have come meanwhile
				return nil, ErrGone
			}
			alive, err := o.alive(ctx, m.Node)
			dead = err == nil && !alive
		case <-ctx.Done():
			telling, cancel := context.WithTimeout(context.WithoutCancel(ctx), aliveEvery)
			defer cancel()
			m.Body = letter(ends, o.Node(), key, nil)
			_ = o.Send(telling, m, answerLife)
			return nil, context.Cause(ctx)
		}
	}
}

// Answer has what is asked of a key here answered by f, in a goroutine of its own, until
// the function that it returns is called, which waits for them. The context of f ends then,
// and when nobody waits for its answer any more; nil says that f gave up because of it.
func (o *Office) Answer(key string, f func(context.Context, Message) []byte) (release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	running := map[string]context.CancelFunc{}
	stop := o.Hold(key, func(m Message) {
		kind, node, to, body, ok := opened(m.Body)
		mu.Lock()
		defer mu.Unlock()
		switch cancel := running[to]; {
		case !ok, ctx.Err() != nil:
		case kind == ends && cancel != nil:
			cancel()
		case kind == asks && cancel == nil:
			answering, cancel := context.WithCancel(ctx)
			running[to] = cancel
			m.Body = body
			all.Go(func() {
				defer func() {
					cancel()
					mu.Lock()
					defer mu.Unlock()
					delete(running, to)
				}()
				o.answer(answering, cancel, node, to, m, f)
			})
		}
	})
	return func() {
		stop()
		mu.Lock()
		cancel()
		mu.Unlock()
		all.Wait()
	}
}

// answer answers one question of a node.
func (o *Office) answer(ctx context.Context, cancel func(), node, key string, m Message, f func(context.Context, Message) []byte) {
	looking, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { o.whileAlive(looking, node, cancel) })
	body := f(ctx, m)
	stop()
	watching.Wait()
	sending, cancelSending := context.WithTimeout(context.WithoutCancel(ctx), answerLife)
	defer cancelSending()
	answer := Message{Node: node, Key: key, Owner: m.Owner, Body: append([]byte{fine}, body...)}
	if body == nil {
		answer.Body = []byte{none}
	}
	if err := o.Send(sending, answer, answerLife); errors.Is(err, ErrTooLarge) {
		answer.Body = []byte{failed}
		_ = o.Send(sending, answer, answerLife)
	}
}

// whileAlive calls gone once a node has ended, unless ctx ends first.
func (o *Office) whileAlive(ctx context.Context, node string, gone func()) {
	looks := time.NewTicker(nodes.Lease)
	defer looks.Stop()
	for {
		select {
		case <-looks.C:
		case <-ctx.Done():
			return
		}
		if alive, err := o.alive(ctx, node); err == nil && !alive {
			gone()
			return
		}
	}
}

// alive reports whether a node lives.
func (o *Office) alive(ctx context.Context, node string) (alive bool, err error) {
	if node == o.Node() {
		return true, nil
	}
	err = o.db.Read(ctx, func(tx *store.Tx) (err error) {
		alive, err = o.node.Alive(tx, node)
		return err
	})
	return alive, err
}

// letter is a question, with who asks and where the answer goes.
func letter(kind byte, node, key string, body []byte) []byte {
	b := append([]byte{kind, byte(len(node)), byte(len(key))}, node...)
	return append(append(b, key...), body...)
}

// opened takes a letter apart.
func opened(b []byte) (kind byte, node, key string, body []byte, ok bool) {
	if len(b) < 3 || len(b) < 3+int(b[1])+int(b[2]) {
		return 0, "", "", nil, false
	}
	n, k := int(b[1]), int(b[2])
	kind, b = b[0], b[3:]
	return kind, string(b[:n]), string(b[n : n+k]), b[n+k:], true
}
