package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// What (t) is done with.
const (
	callers = 10_000 // that have a key each
	chained = 50     // responses that one goes on from
	talked  = 800    // items of a conversation
)

// A keyed gateway is one whose callers have keys, and take turns; or one without.
type keyed struct {
	*process
	keys int // 0: nobody needs one
	next atomic.Int64
	// last is the response that one goes on from, and talk the conversation.
	last, talk string
}

func callerKey(n int64) string { return fmt.Sprintf("abcdefghqj%08dmnopzz", n) }

// ask sends a request with the key of a caller and returns the body of the answer.
func (k *keyed) ask(ctx context.Context, caller int64, method, path, body string, headers ...string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, k.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if k.keys > 0 {
		req.Header.Set("Authorization", "Bearer "+callerKey(caller))
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s: %.500s", req.URL, res.Status, text)
	}
	return text, err
}

// another is the next caller.
func (k *keyed) another() int64 { return k.next.Add(1) % callers }

// made sends a request of the first caller and returns the id of what it made.
func (k *keyed) made(ctx context.Context, path, body string) (string, error) {
	text, err := k.ask(ctx, 0, http.MethodPost, path, body)
	var made struct{ ID string }
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	return made.ID, err
}

// chain makes responses that go on from each other and returns the id of the last.
func (k *keyed) chain(ctx context.Context) (last string, err error) {
	for n := 0; n < chained && err == nil; n++ {
		more := ""
		if last != "" {
			more = `,"previous_response_id":"` + last + `"`
		}
		last, err = k.made(ctx, "/v1/responses", `{"model":"plain","input":"What did a dragoman do, and why did both sides trust him?"`+more+`}`)
	}
	return last, err
}

// converse makes a conversation and returns its id.
func (k *keyed) converse(ctx context.Context) (string, error) {
	id, err := k.made(ctx, "/v1/conversations", `{}`)
	items := strings.TrimSuffix(strings.Repeat(`{"type":"message","role":"user","content":"What did a dragoman do, and why did both sides trust him?"},`, 20), ",")
	for n := 0; n < talked && err == nil; n += 20 {
		_, err = k.ask(ctx, 0, http.MethodPost, "/v1/conversations/"+id+"/items", `{"items":[`+items+`]}`)
	}
	return id, err
}

// kept is (t): a gateway as it is run for many people, with a key for each, limits, a budget
// that all share and a store in a file. Direct is the same gateway with none of that, which
// keeps in memory what it keeps. The gateway has run for so long that it knows that no other
// is on its store.
func (b *bench) kept(ctx context.Context) error {
	keys := make([]string, callers)
	for n := range keys {
		keys[n] = callerKey(int64(n))
	}
	servers := stdioServers(map[string]fakemcp.Config{"other": {Keep: -1, Count: 1}}) // so that names have labels
	servers["bench"] = b.oneServer()["bench"]
	c := &contest{bench: b, setting: setting{servers: servers}}
	sides := [contenders]*keyed{}
	for who, binary := range map[contender]string{ours: b.binary, before: b.older, direct: b.binary} {
		if binary == "" {
			continue
		}
		s := c.setting
		if sides[who] = (&keyed{}); who != direct {
			sides[who].keys = callers
			s.more = map[string]any{
				"auth":    map[string]any{"api_keys": keys},
				"store":   map[string]any{"path": filepath.Join(b.dir, contenderNames[who]+".db")},
				"limits":  []any{map[string]any{"rate": "100000/s", "concurrent": 1000}},
				"budgets": []any{map[string]any{"name": "everybody", "per": "all", "tokens": int64(1_000_000_000_000), "period": "month"}},
			}
		}
		var err error
		if sides[who].process, err = b.gateway(ctx, contenderNames[who], binary, s); err != nil {
			return err
		}
		defer b.stop(contenderNames[who])
		c.sides[who] = sides[who].process
	}
	select {
	case <-time.After(alone):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	labelled := "bench__" + benchTool.Name
	type request func(context.Context, *keyed) error
	asks := func(method, path string, body []byte, headers ...string) request {
		return func(ctx context.Context, k *keyed) error {
			_, err := k.ask(ctx, k.another(), method, path, string(body), headers...)
			return err
		}
	}
	chat := chatBody("plain", false)
	var once atomic.Int64
	for _, side := range sides {
		if side == nil {
			continue
		}
		var err error
		if side.last, err = side.chain(ctx); err != nil {
			return err
		}
		if side.talk, err = side.converse(ctx); err != nil {
			return err
		}
	}
	for _, work := range []struct {
		what string
		do   request
	}{
		{"chat, a tool offered", asks(http.MethodPost, "/v1/chat/completions", chat)},
		{"the same with an Idempotency-Key", func(ctx context.Context, k *keyed) error {
			_, err := k.ask(ctx, k.another(), http.MethodPost, "/v1/chat/completions", string(chat), "Idempotency-Key", fmt.Sprint("key ", once.Add(1)))
			return err
		}},
		{"tools/call", asks(http.MethodPost, "/mcp", bytes.Replace([]byte(callLookup.body), []byte(benchTool.Name), []byte(labelled), 1), "Accept", "application/json, text/event-stream",
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", callLookup.method, "Mcp-Name", labelled)},
		{"a conversation with one tool call", asks(http.MethodPost, "/v1/chat/completions", chatBody("tool", false))},
		{"a stored response", asks(http.MethodPost, "/v1/responses", []byte(`{"model":"plain","input":"What did a dragoman do, and why did both sides trust him?"}`))},
		{fmt.Sprintf("one that goes on from %d", chained), func(ctx context.Context, k *keyed) error {
			_, err := k.ask(ctx, 0, http.MethodPost, "/v1/responses", `{"model":"plain","input":"And then?","previous_response_id":"`+k.last+`"}`)
			return err
		}},
		{fmt.Sprintf("a page of a conversation of %d items", talked), func(ctx context.Context, k *keyed) error {
			_, err := k.ask(ctx, 0, http.MethodGet, "/v1/conversations/"+k.talk+"/items?limit=20", "")
			return err
		}},
	} {
		for who, side := range sides {
			if side != nil {
				c.do[who] = func(ctx context.Context) error { return work.do(ctx, side) }
			}
		}
		_, cost, err := c.rates(ctx, clients)
		if err != nil {
			return fmt.Errorf("%s: %w", work.what, err)
		}
		b.add(row{item: "t", what: work.what, figures: cost, show: duration})
	}
	return nil
}

// alone is how long a gateway is on a store before it takes itself to be alone there
// (docs/decisions/0417), and somewhat more.
const alone = 36 * time.Second
