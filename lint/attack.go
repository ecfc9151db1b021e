package lint

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/schema"
)

// An Attack is a call of a tool by which it did what it must not: what came back, or went
// out, was the canary, which nothing but the hole could have brought there.
type Attack struct {
	// Tool is the tool, and Field the argument.
	Tool  *Tool
	Field string
	// Kind is what was tried, and Sent the argument's value.
	Kind AttackKind
	Sent string
	// Seen is the sign by which it was found.
	Seen string
}

// AttackKind says what an attack tries.
type AttackKind string

// The kinds of attacks. None of them changes anything where it succeeds.
const (
	// AttackPath reads a file that we made, outside of every folder that the tool may
	// know of.
	AttackPath AttackKind = "path"
	// AttackAddress has the server fetch from a listener of ours on this machine.
	AttackAddress AttackKind = "address"
	// AttackShell has a shell compute a number.
	AttackShell AttackKind = "shell"
	// AttackSQL has a database join two texts, or complain about a quote.
	AttackSQL AttackKind = "sql"
)

// mostAttacks bounds the calls that attacks make.
const mostAttacks = 200

// The canary of shells and databases is computed by them: nothing that is sent holds it.
const computed = "dragoman1337canary"

// attack calls the tools that were named one by one with arguments that do harm to
// nobody, and show a hole where there is one.
func (w *watcher) attack() {
	if w.probe != ProbeAttack {
		return
	}
	trap, err := newTrap(w.target.local())
	if err != nil {
		w.record.sent(err.Error(), "nothing")
		return
	}
	defer trap.close()
	left := mostAttacks
	for _, t := range w.server.Tools {
		if !slices.Contains(w.attacked, t.Name) || t.Malformed != nil || t.Refusal != nil {
			continue
		}
		arguments := usualArguments(t)
		for _, p := range t.Params() {
			if !p.Schema.Get("type").IsString("string") || p.Schema.Has("enum") || p.Schema.Has("const") {
				continue
			}
			usual, _ := rawjson.String(arguments.Get(p.Name))
			for _, try := range trap.tries(usual) {
				if w.over() || left == 0 {
					return
				}
				left--
				with := *arguments.Clone()
				with.Set(p.Name, rawjson.Quote(try.value))
				if seen := w.try(t, try, with); seen != "" {
					w.live.Attacks = append(w.live.Attacks, Attack{Tool: t, Field: p.Name, Kind: try.kind, Sent: try.value, Seen: seen})
				}
			}
		}
	}
}

// try makes one call, and returns the sign of a hole; empty for none.
func (w *watcher) try(t *Tool, try try, arguments rawjson.Object) (seen string) {
	m := w.message(w.main, "tools/call", params("name", string(rawjson.Quote(t.Name)), "arguments", string(arguments.Bytes())))
	m.words = "an attack on " + quote(t.Name)
	a := w.send(w.main, m, w.budget.Answer)
	return try.seen(string(a.Result) + "\n" + a.Message)
}

// usualArguments are arguments with which a tool can be called: those of a sample, and a word
// for each text that a sample has no value for.
func usualArguments(t *Tool) rawjson.Object {
	o, _ := sample(t)
	for _, p := range t.Params() {
		if p.Required && o.Get(p.Name) == nil && p.Schema.Get("type").IsString("string") {
			o.Set(p.Name, json.RawMessage(`"dragoman"`))
		}
	}
	return o
}

// A try is one value of an argument, and how its success is seen.
type try struct {
	kind  AttackKind
	value string
	seen  func(answer string) string
}

// A trap is what only a hole leads to: a file, and a listener.
type trap struct {
	folder, file string
	token        string // stands in the file
	listener     net.Listener
	server       *http.Server

	mu      sync.Mutex
	visited map[string]bool
}

// newTrap makes a trap; where the server is on another machine it has neither file nor
// listener.
func newTrap(local bool) (*trap, error) {
	t := &trap{token: "dragoman-" + rand.Text(), visited: map[string]bool{}}
	if !local {
		return t, nil
	}
	var err error
	if t.folder, err = os.MkdirTemp("", "dragoman-lint-"); err != nil {
		return nil, err
	}
	t.file = filepath.Join(t.folder, "canary.txt")
	if err = os.WriteFile(t.file, []byte(t.token+"\n"), 0o644); err == nil {
		t.listener, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		os.RemoveAll(t.folder)
		return nil, err
	}
	t.server = &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		t.visited[strings.Trim(r.URL.Path, "/")] = true
		t.mu.Unlock()
		fmt.Fprintln(w, "nothing is here")
	})}
	go t.server.Serve(t.listener)
	return t, nil
}

func (t *trap) close() {
	if t.server != nil {
		t.server.Close()
		os.RemoveAll(t.folder)
	}
}

// tries are all values of one argument, whose usual value is given.
func (t *trap) tries(usual string) []try {
	all := slices.Concat(injections(usual), statements(usual))
	if t.server == nil {
		return all
	}
	return slices.Concat(t.paths(), t.addresses(), all)
}

// paths lead to the file.
func (t *trap) paths() (all []try) {
	slashed := filepath.ToSlash(t.file)
	below := strings.TrimPrefix(slashed, "/")
	for _, value := range []string{
		t.file, "file://" + slashed, strings.Repeat("../", 16) + below,
		strings.Repeat("..%2f", 16) + strings.ReplaceAll(below, "/", "%2f"),
		strings.Repeat("....//", 16) + below,
	} {
		all = append(all, try{AttackPath, value, func(answer string) string {
			if strings.Contains(answer, t.token) {
				return "the content of a file outside of its folders"
			}
			return ""
		}})
	}
	return all
}

// addresses lead to the listener, under the names that filters forget.
func (t *trap) addresses() (all []try) {
	port := t.listener.Addr().(*net.TCPAddr).Port
	for i, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "127.1", "0.0.0.0"} {
		path := fmt.Sprintf("%s-%d", t.token, i)
		all = append(all, try{AttackAddress, fmt.Sprintf("http://%s:%d/%s", host, port, path), func(string) string {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.visited[path] {
				return "a request to this machine"
			}
			return ""
		}})
	}
	return all
}

// injections have a shell compute the canary.
func injections(usual string) (all []try) {
	const say = `echo dragoman$((1000+337))canary`
	for _, value := range []string{"; " + say + " #", "$(" + say + ")", "`" + say + "`", "| " + say + " #", "\n" + say + "\n", "' ; " + say + " #", `" ; ` + say + " #"} {
		all = append(all, try{AttackShell, usual + value, func(answer string) string {
			if strings.Contains(answer, computed) {
				return "a number that a shell computed"
			}
			return ""
		}})
	}
	return all
}

// databaseComplains are words of databases about a statement that they cannot read.
var databaseComplains = pattern.Of(`(?i)near "[^"]*": syntax error|unrecognized token: "|unterminated quoted string|syntax error at or near|error in your SQL syntax|unclosed quotation mark|ORA-0(0933|1756)|quoted string not properly terminated`)

// statements have a database join the canary, or stumble over a quote.
func statements(usual string) (all []try) {
	const joined = `'dragoman'||'1337canary'`
	joinedSeen := func(answer string) string {
		if strings.Contains(answer, computed) {
			return "a text that a database joined"
		}
		return ""
	}
	for columns := 1; columns <= 4; columns++ {
		all = append(all, try{AttackSQL, usual + `' UNION SELECT ` + strings.TrimSuffix(strings.Repeat(joined+",", columns), ",") + ` -- `, joinedSeen})
	}
	return append(all, try{AttackSQL, usual + `'`, func(answer string) string {
		if m := databaseComplains.FindString(strings.ReplaceAll(answer, `\"`, `"`)); m != "" {
			return "the complaint of a database: " + m
		}
		return ""
	}})
}

// local reports whether a server runs on this machine.
func (t *Target) local() bool {
	u, err := url.Parse(t.URL)
	return t.URL == "" || err == nil && loopback(u.Hostname())
}

// attackRules judge what attacks brought to light.
var attackRules = []Rule{
	{
		ID: "X030", Severity: Error, Title: "path out of its folders",
		Why:     "Whoever can talk a model into a path reads what the server's user can read: keys, mails, other people's files.",
		Advice:  "Resolve the path with its links, and refuse what is not below an allowed folder; os.Root and its like do it.",
		Source:  "CWE-22; CVE-2025-53109",
		Gateway: "A sandbox keeps a local server to the folders of its configuration.",
		Live:    attackedBy(AttackPath),
	},
	{
		ID: "X031", Severity: Error, Title: "fetches from addresses of its own machine",
		Why:     "Behind the server's address are metadata services, databases and consoles that trust whoever is inside.",
		Advice:  "Resolve the name, refuse loopback, private and link-local addresses, and connect to what was judged.",
		Source:  "CWE-918; MCP security best practices (SSRF)",
		Gateway: "A sandbox without network keeps a local server from it.",
		Live:    attackedBy(AttackAddress),
	},
	{
		ID: "X032", Severity: Error, Title: "argument that a shell reads",
		Why:    "Whoever can talk a model into an argument runs commands as the server's user.",
		Advice: "Start the program with a list of arguments, without a shell.",
		Source: "CWE-78; CVE-2025-53967",
		Live:   attackedBy(AttackShell),
	},
	{
		ID: "X033", Severity: Error, Title: "argument that becomes a part of a statement",
		Why:    "Whoever can talk a model into an argument reads, and changes, every table.",
		Advice: "Bind arguments as parameters.",
		Source: "CWE-89; reports of the archived PostgreSQL and SQLite servers",
		Live:   attackedBy(AttackSQL),
	},
}

// attackedBy makes a check of one kind of attack; it says one thing about an argument.
func attackedBy(kind AttackKind) func(*Server, *Live, Say) {
	return func(_ *Server, l *Live, say Say) {
		type argument struct {
			tool  *Tool
			field string
		}
		told := map[argument]bool{}
		for _, a := range l.Attacks {
			if key := (argument{a.Tool, a.Field}); a.Kind == kind && !told[key] {
				told[key] = true
				say(At{Tool: a.Tool.Name, Pointer: "/inputSchema" + schema.Pointer("properties", a.Field)}, "with %s = %s there came %s", quote(a.Field), quote(a.Sent), a.Seen)
			}
		}
	}
}

// attackTime is how long all attacks on one server may take.
const attackTime = 5 * time.Minute
