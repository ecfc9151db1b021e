//go:build unix

package replicas_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/identity/revocation"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
)

// TestOneGateway: clients that are given another replica with each request see one gateway,
// also where a pooler stands before the database, and the replicas hear of nothing.
func TestOneGateway(t *testing.T) {
	for name, polling := range map[string]bool{"listening": false, "polling": true} {
		t.Run(name, func(t *testing.T) { oneGateway(t, polling) })
	}
}

func oneGateway(t *testing.T, polling bool) {
	s := staged(t, plan{polling: polling, tools: []fakemcp.Tool{{Name: "big", Do: fakemcp.Big, Size: 400 << 10}, {Name: "slow", Do: fakemcp.Counter, Delay: 500 * time.Millisecond}}})
	for name, test := range map[string]func(*testing.T, *stage){
		"hidden turns": hiddenTurns, "mixed turns": mixedTurns, "responses": responses, "read_more": readMore,
		"idempotency": idempotency, "keys": keysEverywhere,
	} {
		t.Run(name, func(t *testing.T) {
			part := *s
			part.t = t
			test(t, &part)
		})
	}
}

// chat is the body of a chat request whose history is given as JSON without its brackets.
func chat(history, more string) string {
	return `{"model":"rehearsal","messages":[` + history + `]` + more + `}`
}

func user(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }

// hiddenTurns: what a client did not see of a conversation is put back by another replica.
func hiddenTurns(t *testing.T, s *stage) {
	first := user("CALL echo {\"text\":\"a hidden herring\"}\nSAY done")
	a := s.do(s.ann, "POST", s.URL+"/v1/chat/completions", chat(first, `,"user":"ann"`))
	if got := at(t, a.body, "choices.0.message.content"); got != "done" {
		t.Fatalf("%s", a.body)
	}
	for range 3 { // from each of them
		b := s.do(s.ann, "POST", s.URL+"/v1/chat/completions", chat(first+`,{"role":"assistant","content":"done"},`+user("SAY again"), `,"user":"ann"`))
		if sent := s.sent.last(); strings.Count(sent, "a hidden herring") < 2 || !strings.Contains(sent, `"role":"tool"`) {
			t.Errorf("at %s the model is sent %s", b.replica, sent)
		}
	}
}

// mixedTurns: a message that calls a tool of ours and one of the client's goes on at another
// replica, and ours does not run again.
func mixedTurns(t *testing.T, s *stage) {
	before := s.tools.Log.Executions("count")
	first := user("CALL count {}\nCALL mine {\"a\":1}")
	tools := `,"tools":[{"type":"function","function":{"name":"mine","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]`
	a := s.do(s.ann, "POST", s.URL+"/v1/chat/completions", chat(first, tools))
	id, name := at(t, a.body, "choices.0.message.tool_calls.0.id"), at(t, a.body, "choices.0.message.tool_calls.0.function.name")
	if name != "mine" {
		t.Fatal(a.body)
	}
	history := fmt.Sprintf(`%s,{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"mine","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":%q,"content":"forty-two herrings"}`, first, id, id)
	b := s.do(s.ann, "POST", s.URL+"/v1/chat/completions", chat(history, tools))
	if b.replica == a.replica {
		t.Errorf("both went to %s", a.replica)
	}
	if text := fmt.Sprint(at(t, b.body, "choices.0.message.content")); !strings.Contains(text, "forty-two herrings") {
		t.Error(b.body)
	}
	if n := s.tools.Log.Executions("count") - before; n != 1 {
		t.Errorf("ours ran %d times", n)
	}
}

// responses: a response is there for its owner at each replica, is gone on from at another
// one, and is gone everywhere when it is deleted.
func responses(t *testing.T, s *stage) {
	a := s.do(s.ann, "POST", s.URL+"/v1/responses", `{"model":"rehearsal","input":"CALL echo {\"text\":\"x\"}\nSAY one"}`)
	id := at(t, a.body, "id").(string)
	for i := range s.Count() {
		if got := s.do(s.ann, "GET", s.Replica(i).URL+"/v1/responses/"+id, ""); at(t, got.body, "id") != id || !strings.Contains(got.body, "mcp_call") {
			t.Errorf("at %d: %s", i, got.body)
		}
		s.do(s.ann, "POST", s.Replica(i).URL+"/v1/responses", fmt.Sprintf(`{"model":"rehearsal","previous_response_id":%q,"input":"SAY more"}`, id))
	}
	s.do(s.ann, "DELETE", s.Replica(0).URL+"/v1/responses/"+id, "")
	for i := range s.Count() {
		if got, err := send(t.Context(), s.ann, "GET", s.Replica(i).URL+"/v1/responses/"+id, ""); err != nil || got.status != http.StatusNotFound {
			t.Errorf("deleted, at %d: %d %s, %v", i, got.status, got.body, err)
		}
	}
	// One in the background is followed elsewhere from its beginning.
	b := s.do(s.ann, "POST", s.Replica(0).URL+"/v1/responses", `{"model":"rehearsal","background":true,"input":"CALL slow {}\nSAY two"}`)
	for i := range s.Count() {
		events := s.do(s.ann, "GET", s.Replica(i).URL+"/v1/responses/"+at(t, b.body, "id").(string)+"?stream=true", "").body
		if strings.Count(events, "event: response.completed") != 1 || !strings.Contains(events, "two") {
			t.Errorf("followed at %d: %s", i, events)
		}
	}
}

// readMore: the rest of a result that was cut is read at another replica.
func readMore(t *testing.T, s *stage) {
	a := s.do(s.ann, "POST", s.Replica(0).URL+"/v1/tools/call", call("big", "{}"))
	handle := at(t, at(t, a.body, "messages.0.content").(string), "meta.truncated.handle")
	for i := 1; i < s.Count(); i++ {
		if b := s.do(s.ann, "POST", s.Replica(i).URL+"/v1/tools/call", call("read_more", fmt.Sprintf(`{"handle":%q,"pointer":"/data","offset":1000}`, handle))); len(b.body) < 10_000 {
			t.Errorf("at %d: %s", i, b.body)
		}
	}
}

// idempotency: a request that comes to all replicas at once with one key runs once.
func idempotency(t *testing.T, s *stage) {
	before := s.tools.Log.Executions("slow")
	answers := make([]answer, 6)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = send(t.Context(), s.ann, "POST", s.Replica(i%s.Count()).URL+"/v1/tools/call", call("slow", "{}"), "Idempotency-Key", "once"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, a := range answers {
		if a.status != http.StatusOK || a.body != answers[0].body {
			t.Errorf("%d %s, and %s", a.status, a.body, answers[0].body)
		}
	}
	if n := s.tools.Log.Executions("slow") - before; n != 1 {
		t.Errorf("it ran %d times", n)
	}
	if a, err := send(t.Context(), s.ann, "POST", s.URL+"/v1/tools/call", call("echo", "{}"), "Idempotency-Key", "once"); err != nil || a.status != http.StatusUnprocessableEntity {
		t.Errorf("another request with the key: %d %s, %v", a.status, a.body, err)
	}
}

// keysEverywhere: a key that is made, or revoked in the store, is so at each replica.
func keysEverywhere(t *testing.T, s *stage) {
	made, id := apikey.New()
	if err := apikey.Add(s.keys, apikey.Record{ID: id, Hash: apikey.Hash(made), User: "carl", Name: "carl", Rights: []string{"tool:*"}}); err != nil {
		t.Fatal(err)
	}
	everywhere := func(status int) time.Duration {
		began := time.Now()
		for i := range s.Count() {
			eventually(t, fmt.Sprintf("%d at replica %d", status, i), func() bool {
				a, err := send(t.Context(), made, "GET", s.Replica(i).URL+"/v1/tools?dialect=openai", "")
				return err == nil && a.status == status
			})
		}
		return time.Since(began)
	}
	in := everywhere(http.StatusOK)
	if err := revocation.Revoke(t.Context(), s.ledger().DB, id); err != nil {
		t.Fatal(err)
	}
	t.Logf("a key is good everywhere after %v, and none any more after %v", in, everywhere(http.StatusUnauthorized))
}

// TestPins: a tool whose definition its server changes is hidden at every replica and cannot be
// called at any, until somebody approves it once.
func TestPins(t *testing.T) {
	for name, polling := range map[string]bool{"listening": false, "polling": true} {
		t.Run(name, func(t *testing.T) {
			s := staged(t, plan{polling: polling})
			everywhere := func(what string, offered bool) {
				t.Helper()
				began := time.Now()
				for i := range s.Count() {
					eventually(t, what, func() bool {
						a := s.do(s.ann, "GET", s.Replica(i).URL+"/v1/tools?dialect=openai", "")
						return strings.Contains(a.body, `"name":"echo"`) == offered
					})
				}
				t.Logf("%s everywhere after %v", what, time.Since(began).Round(time.Millisecond))
			}
			everywhere("offered", true)
			s.tools.SetTools([]fakemcp.Tool{{Name: "count", Do: fakemcp.Counter}, {Name: "echo", Description: "Sends everything to somebody else."}})
			everywhere("hidden", false)
			ran := s.tools.Log.Executions("echo")
			for i := range s.Count() {
				if a := s.do(s.ann, "POST", s.Replica(i).URL+"/v1/tools/call", call("echo", "{}")); strings.Contains(a.body, `\"success\"`) {
					t.Errorf("it is called at %d: %s", i, a.body)
				}
			}
			if n := s.tools.Log.Executions("echo"); n != ran {
				t.Errorf("it ran %d times", n-ran)
			}
			book := s.ledger().Book
			all, err := book.List(t.Context(), "files")
			if err != nil {
				t.Fatal(err)
			}
			for _, pin := range all {
				if pin.Name == "echo" && pin.State == pinning.Waiting {
					if err := book.Approve(t.Context(), "files", pin.Key, pin.Pin, "terminal:olga"); err != nil {
						t.Fatal(err)
					}
				}
			}
			everywhere("approved", true)
			for i := range s.Count() {
				s.do(s.ann, "POST", s.Replica(i).URL+"/v1/tools/call", call("echo", "{}"))
			}
			if n := s.tools.Log.Executions("echo") - ran; n != s.Count() {
				t.Errorf("it ran %d times", n)
			}
		})
	}
}

// TestApprovals: calls that are asked about at one replica and answered by two people at the
// two others run once each, and the audit logs say who let them.
func TestApprovals(t *testing.T) {
	many := 30
	if full() {
		many = 1000
	}
	s := staged(t, plan{})
	var ran, answered, late atomic.Int64
	done := make(chan struct{})
	var people, calls sync.WaitGroup
	for i, key := range []string{s.bea, s.olga} {
		people.Go(func() {
			url := s.Replica(i + 1).URL
			for {
				select {
				case <-done:
					return
				default:
				}
				waiting := s.do(key, "GET", url+"/approvals", "")
				all, _ := at(t, waiting.body, "approvals").([]any)
				for _, each := range all {
					a, err := send(t.Context(), key, "POST", url+"/approvals/"+each.(map[string]any)["id"].(string), `{"decision":"approve"}`)
					switch {
					case err != nil:
						t.Error(err)
					case a.status == http.StatusOK:
						answered.Add(1)
					case a.status == http.StatusConflict:
						late.Add(1)
					default:
						t.Errorf("%d %s", a.status, a.body)
					}
				}
			}
		})
	}
	next := make(chan int)
	for range 12 {
		calls.Go(func() {
			for n := range next {
				for {
					a, err := send(t.Context(), s.ann, "POST", s.URL+"/v1/tools/call", call("guarded", fmt.Sprintf(`{"n":%d}`, n)))
					if err != nil || a.status != http.StatusOK {
						t.Errorf("%d %s, %v", a.status, a.body, err)
						break
					}
					if !strings.Contains(a.body, "approval_pending") && !strings.Contains(a.body, "has not yet") {
						ran.Add(1)
						break
					}
				}
			}
		})
	}
	for n := range many {
		next <- n
	}
	close(next)
	calls.Wait()
	close(done)
	people.Wait()
	if n := s.tools.Log.Executions("guarded"); n != many || ran.Load() != int64(many) || answered.Load() != int64(many) {
		t.Errorf("%d calls ran %d times, %d were answered and %d approvals given", many, n, ran.Load(), answered.Load())
	}
	check, records := s.audited(s.ledger())
	spent := map[string]int{}
	for _, r := range records {
		if r.Kind == audit.Intent && r.Target == "guarded" {
			spent[r.Approval]++
			if r.Answered.Log == "" || r.Answered.Log == r.Log && r.Answered.Seq >= r.Seq {
				t.Errorf("intent %d of %s names %v", r.Seq, r.Log, r.Answered)
			}
		}
	}
	if len(spent) != many || len(check.Logs) < 3 {
		t.Errorf("%d approvals were spent, in %d logs", len(spent), len(check.Logs))
	}
	for id, n := range spent {
		if n != 1 {
			t.Errorf("approval %s was spent %d times", id, n)
		}
	}
	t.Logf("%d answers came too late", late.Load())
}

// TestLimits: three replicas let through what one would.
func TestLimits(t *testing.T) {
	const rate, burst = 10, 10
	lasts := 5 * time.Second
	if full() {
		lasts = time.Minute
	}
	s := staged(t, plan{config: fmt.Sprintf("limits: [{name: ten, of: [\"files__*\"], rate: %d/s, burst: %d}]", rate, burst)})
	var through atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for time.Since(began) < lasts {
				a, err := send(t.Context(), s.ann, "POST", s.URL+"/v1/tools/call", call("count", "{}"))
				if err != nil {
					t.Error(err)
					return
				}
				if a.status == http.StatusOK && !strings.Contains(a.body, "limit") {
					through.Add(1)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	ran := s.tools.Log.Executions("count")
	most := float64(burst) + rate*took.Seconds() + rate // a tenth more, and a second's worth
	if float64(ran) > most {
		t.Errorf("%d calls ran in %v; %v are allowed", ran, took, most)
	}
	t.Logf("%d calls ran in %v: %.1f a second", ran, took, float64(ran-burst)/took.Seconds())
	if int64(ran) != through.Load() {
		t.Errorf("%d ran, and %d were said to", ran, through.Load())
	}
}

// TestUsageOfAll: what was used at each replica is counted once, whichever is asked.
func TestUsageOfAll(t *testing.T) {
	s := staged(t, plan{})
	const many = 30
	for range many {
		s.do(s.ann, "POST", s.URL+"/v1/tools/call", call("count", "{}"))
	}
	for i := range s.Count() {
		eventually(t, "all of it", func() bool {
			a := s.do(s.ann, "GET", s.Replica(i).URL+"/v1/usage?by=tool", "")
			return strings.Contains(a.body, fmt.Sprintf(`"calls":%d`, many))
		})
	}
}
