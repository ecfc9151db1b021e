package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Each conversation of the soak has a name that no other has, of its key, its
// worker, a number and its kind, and each call in it a nonce, which is that name,
// a point and a number. So a nonce tells whose it is
// wherever it turns up: in a server, in a request to a model, in an answer.
var nonces = regexp.MustCompile(`k[0-9]+w[0-9]+c[0-9]{6}[a-z]+\.[0-9]`)

func conversationOf(nonce string) string {
	name, _, _ := strings.Cut(nonce, ".")
	return name
}

// foreign is the first nonce in a text that is not of that conversation; empty
// for none.
func foreign(text, conversation string) string {
	for _, nonce := range nonces.FindAllString(text, -1) {
		if conversationOf(nonce) != conversation {
			return nonce
		}
	}
	return ""
}

// nonceOfWrite is the nonce of a tools/call message of the tool that writes;
// empty for other messages.
func nonceOfWrite(message string) string {
	var m struct {
		Method string
		Params struct {
			Name      string
			Arguments struct{ Nonce string }
		}
	}
	if json.Unmarshal([]byte(message), &m) != nil || m.Method != "tools/call" || m.Params.Name != "write" {
		return ""
	}
	return m.Params.Arguments.Nonce
}

// A ledger is what is known of a soak: what servers ran, what models saw, and
// what is wrong with either.
type ledger struct {
	mu      sync.Mutex
	runs    map[string][]string      // by nonce: the servers that ran it
	told    map[string]bool          // nonces whose write a model was told to have succeeded
	owners  map[string]string        // of what was drawn from the vault: the conversation
	waiting map[string]chan struct{} // by conversation: closed when a model hears of it
	tools   map[string]bool          // that were offered so far
	wrong   []string
}

func newLedger() *ledger {
	return &ledger{
		runs: make(map[string][]string), told: make(map[string]bool), owners: make(map[string]string),
		waiting: make(map[string]chan struct{}), tools: make(map[string]bool),
	}
}

// ran notes that a server ran a write.
func (l *ledger) ran(server, nonce string) {
	if nonce == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[nonce] = append(l.runs[nonce], server)
}

// mixed notes that something is where it does not belong.
func (l *ledger) mixed(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, "MIXED: "+fmt.Sprintf(format, args...))
}

// fault notes anything else that is wrong.
func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// heard returns what is closed as soon as a model hears of the conversation.
func (l *ledger) heard(conversation string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := make(chan struct{})
	l.waiting[conversation] = heard
	return heard
}

// offered reports whether models were offered all these tools so far.
func (l *ledger) offered(names ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(names, func(name string) bool { return !l.tools[name] })
}

// soakRequest is what a model got, as far as it matters here. The field user
// names the conversation that it was sent for.
type soakRequest struct {
	User     string
	Tools    []struct{ Function struct{ Name string } }
	Messages []struct {
		Role    string
		Content any
	}
}

// drawn is how the vault's tool tells what was drawn.
var drawn = regexp.MustCompile(`"executions":([0-9]+)`)

// received judges a request that a model got: all of it must be of one
// conversation.
func (l *ledger) received(body []byte) (writes int) {
	var r soakRequest
	if err := json.Unmarshal(body, &r); err != nil {
		l.fault("a model got no JSON: %v: %.300s", err, body)
		return 0
	}
	if nonce := foreign(string(body), r.User); nonce != "" {
		l.mixed("a model that was asked in %s saw %s of another conversation: %.3000s", r.User, nonce, body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if heard := l.waiting[r.User]; heard != nil {
		close(heard)
		delete(l.waiting, r.User)
	}
	for _, tool := range r.Tools {
		l.tools[tool.Function.Name] = true
	}
	for _, m := range r.Messages {
		text, _ := m.Content.(string)
		if m.Role != "tool" || !strings.HasPrefix(text, `{"status":"success"`) {
			continue
		}
		if strings.Contains(text, `"tool":"write"`) {
			for _, nonce := range nonces.FindAllString(text, 1) {
				l.told[nonce] = true
				writes++
			}
		}
		if found := drawn.FindStringSubmatch(text); found != nil {
			if owner := l.owners[found[1]]; owner == "" {
				l.owners[found[1]] = r.User
			} else if owner != r.User {
				l.wrong = append(l.wrong, fmt.Sprintf("MIXED: what was drawn in %s was shown in %s", owner, r.User))
			}
		}
	}
	return writes
}

// faults are all that is wrong, the first few of each kind in full.
func (l *ledger) faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.wrong)
	for nonce, ran := range l.runs {
		if len(ran) > 1 {
			all = append(all, fmt.Sprintf("TWICE: the write %s ran %d times, at %s", nonce, len(ran), ran))
		}
	}
	for nonce := range l.told {
		if len(l.runs[nonce]) == 0 {
			all = append(all, fmt.Sprintf("NEVER: the model was told that the write %s succeeded, and it never ran", nonce))
		}
	}
	slices.Sort(all)
	const most = 20
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more", len(all)-most))
	}
	return all
}
