package toolkit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxAsks is how many questions one call may have, and how often it is made again.
	maxAsks = 16
	// maxAskState is the length of the answers that a client is given to bring back, in
	// bytes.
	maxAskState = 64 << 10
	// askTime is how long a client of the legacy era is waited for.
	askTime = 10 * time.Minute
	// asksInResults is the first version of MCP in which a question is a result.
	asksInResults = "2026-07-28"
)

// asks are the questions of one call: what was answered in earlier legs of it, and
// what this leg wants to know.
type asks struct {
	can  bool
	last float64 // what was said of progress in earlier legs
	sent bool

	mu     sync.Mutex
	given  map[string]*sdk.ElicitResult
	used   map[string]*sdk.ElicitResult // of those given, in this leg
	open   sdk.InputRequestMap
	asked  map[string]int // how often the same was asked in this leg, but in earlier runs of the function
	before map[string]int // asked when the function began: by middleware
}

// unasked is the error of a question that the client has to be asked first.
type unasked struct{}

func (unasked) Error() string { return "toolkit: the user has not been asked yet; return this error" }

// asksOf reads what a request brings of answers. What is no state of ours is nothing:
// then it is asked anew.
func asksOf(req *sdk.CallToolRequest) *asks {
	q := &asks{given: map[string]*sdk.ElicitResult{}}
	if c := req.ClientCapabilities(); c != nil && c.Elicitation != nil {
		q.can = c.Elicitation.Form != nil || c.Elicitation.URL == nil // a client that names neither shows forms
	}
	if state := req.Params.RequestState; state != "" && len(state) <= maxAskState {
		if json.Unmarshal([]byte(state), &q.given) != nil || q.given == nil {
			q.given = map[string]*sdk.ElicitResult{}
		}
	}
	for key, response := range req.Params.InputResponses {
		if answer, ok := response.(*sdk.ElicitResult); ok {
			q.given[key] = answer
		}
	}
	return q
}

// begin begins a leg.
func (q *asks) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used, q.open, q.asked = map[string]*sdk.ElicitResult{}, sdk.InputRequestMap{}, map[string]int{}
}

// enter begins the function within a leg. Middleware may have asked before.
func (q *asks) enter() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.before = maps.Clone(q.asked)
}

// anew forgets what the function asked: when it runs again in the same leg, as for a
// middleware that calls next again, it asks the same questions.
func (q *asks) anew() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = maps.Clone(q.before)
}

// answer returns the answer to a question, or notes that it is to be asked.
func (q *asks) answer(r *Request, message string, form json.RawMessage) (map[string]any, error) {
	if !q.can {
		return nil, unanswered(ErrCannotAsk, "This needs an answer of the user, and the client that is used shows no forms (MCP elicitation).")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	key := q.key(r, message, form)
	given := q.given[key]
	switch {
	case len(q.used)+len(q.open) >= maxAsks && q.used[key] == nil:
		return nil, errors.New("toolkit: a call asks too many questions")
	case given == nil:
		q.open[key] = &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: form}
		return nil, unasked{}
	}
	q.used[key] = given
	switch given.Action {
	case "accept":
		return given.Content, nil
	case "decline":
		return nil, unanswered(ErrDeclined, "The user was asked and said no. Do not try it again in another way.")
	case failed:
		return nil, unanswered(ErrCannotAsk, "The user could not be asked: the client failed to.")
	}
	return nil, unanswered(ErrDismissed, "The user was asked and gave no answer.")
}

// failed is the action of a client that gave an error.
const failed = "failed"

// key names a question: its words and form, in a call of this tool with these
// arguments, and which of several that are equal it is.
func (q *asks) key(r *Request, message string, form json.RawMessage) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.Name), r.Arguments, []byte(message), form} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	key := hex.EncodeToString(h.Sum(nil)[:12])
	n := q.asked[key]
	q.asked[key]++
	return key + "-" + strconv.Itoa(n)
}

// waits reports whether this leg wants to know something.
func (q *asks) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open) > 0
}

// wants returns the questions of a leg as a result of the modern era.
func (q *asks) wants() (*sdk.CallToolResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	result := &sdk.CallToolResult{InputRequests: q.open}
	if len(q.used) == 0 {
		return result, nil
	}
	state, err := json.Marshal(q.used)
	if err == nil && len(state) > maxAskState {
		err = Refuse("The user's answers are too long together.")
	}
	result.RequestState = string(state)
	return result, err
}

// put puts the questions of a leg to a client of the legacy era, one after the other.
// The error is that of the call's context.
func (q *asks) put(ctx context.Context, s *sdk.ServerSession, warn func(error)) error {
	q.mu.Lock()
	open := q.open
	q.mu.Unlock()
	for key, question := range open {
		limited, cancel := context.WithTimeout(ctx, askTime)
		answer, err := s.Elicit(limited, question.(*sdk.ElicitParams))
		late := limited.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && late:
			answer = &sdk.ElicitResult{Action: "cancel"}
		case err != nil:
			warn(err)
			answer = &sdk.ElicitResult{Action: failed}
		}
		q.mu.Lock()
		q.given[key] = answer
		q.mu.Unlock()
	}
	return nil
}
