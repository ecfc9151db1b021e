// Package console is the door for people with a browser: they see what models see, and
// answer what waits for a person. All that it shows it reads from the packages that have
// it, and what it does goes the same way as at the other doors: there is no second way to
// list, to call, to approve or to judge.
//
//	GET  /console/                      servers and model APIs, and what waits
//	GET  /console/servers/{label}       one server
//	GET  /console/tools                 the catalogue
//	GET  /console/tool                  one tool, in a dialect
//	POST /console/call                  calls it, as the person who is signed in
//	GET  /console/inbox                 what waits for a person
//	POST /console/inbox/{id}            answers a call that waits
//	POST /console/pins                  trusts a definition that has changed
//	GET  /console/live                  conversations and calls as they run
//	GET  /console/usage                 what was used of models and tools
//	GET  /console/live/of/{request}     the one that answers a request of one's own
//	GET  /console/playground            a chat, beside what happens in it
//	POST /console/playground            asks a model, as POST /v1/chat/completions does
//	GET  /console/audit                 the audit log
//	GET  /console/configuration         what is in effect
//	GET  /console/events                what is new, as server-sent events
//	/console/sign-in, /console/assets/  for everybody
//
// Pages are templates, with one script and one style sheet, and need no other host. Text of
// servers, models and callers is hostile: it is text everywhere, and what shows nothing is
// spelled out.
package console

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/dialect"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/signin"
	"github.com/dragoman-mcp/dragoman/internal/judge/approval"
	"github.com/dragoman-mcp/dragoman/internal/judge/audit"
	"github.com/dragoman-mcp/dragoman/internal/judge/budget"
	"github.com/dragoman-mcp/dragoman/internal/judge/gate"
	"github.com/dragoman-mcp/dragoman/internal/judge/pinning"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/judge/usage"
	"github.com/dragoman-mcp/dragoman/internal/reach/find"
	"github.com/dragoman-mcp/dragoman/internal/reach/upstream"
	"github.com/dragoman-mcp/dragoman/internal/session"
)

// Root is where the console is.
const Root = "/console/"

// Open are the patterns of [Console.Front], for everybody: who signs in has no session yet.
var Open = []string{Root + "sign-in", Root + "sign-in/", Root + "assets/"}

// A Setup is what the configuration says now.
type Setup struct {
	Sessions  *session.Opener
	Policy    *policy.Policy
	Upstreams *upstream.Set
	Dialects  *dialect.Table
	// File is the configuration as YAML, secrets hidden, and Path where it was read;
	// Warnings are what deserves a look in it.
	File     func() []byte
	Path     string
	Warnings []string
	// Chat is the route that asks a model, of the API's own door.
	Chat door.Handler
}

// Options are what a [Console] needs. Inbox, Book and Audit may be nil; so may Secret where
// everybody has a key.
type Options struct {
	// Now returns what the configuration says now.
	Now func() *Setup
	// On reports whether there is a console now.
	On func() bool
	// Sessions are the browsers that are signed in.
	Sessions *signin.Sessions
	// Secret signs in the operator where nobody is asked for a key.
	Secret *signin.Secret
	// Recognise finds out whose a key is, and Required whether callers have one.
	Recognise func(*http.Request) (caller.Caller, error)
	Required  func() bool
	// At are authorization servers at which people sign in; nil for none.
	At SignIns
	// Secure says that browsers come by https.
	Secure bool
	Gate   *gate.Gate
	Inbox  *approval.Inbox
	Book   *pinning.Book
	Audit  *audit.Log
	// Servers returns what all callers share, and Said what a local server wrote that is
	// no message.
	Servers dragoman.Toolset
	Said    func(label string) string
	// Live is what runs; nil for nothing that could be watched.
	Live *session.Live
	// Captures are what is kept of what ran; nil where nothing is.
	Captures Captures
	// Usage reads what was used, and Named what callers are called there, by their IDs; both
	// are nil where no usage is kept. Budgets are those for one caller, or all.
	Usage   func(context.Context, usage.Query) ([]usage.Row, error)
	Named   func(context.Context) (map[string]string, error)
	Budgets func(context.Context, *caller.Caller) []budget.State
	// Reload reads the configuration again; check changes nothing. It returns the keys that
	// changed: those that are in effect, and those that need another start. Refused is why
	// it is not in effect as it was read last; empty where it is.
	Reload  func(ctx context.Context, check bool) (now, restart []string, err error)
	Refused func() string
	// MaxBody says what bounds the body of a request, in bytes; zero is
	// [door.DefaultMaxBody].
	MaxBody func() int64
	// Version is our version.
	Version string
	// Node returns what this process is called among its replicas, and "" where it is
	// alone; nil is alone.
	Node func() string
	Log  *slog.Logger
}

// Captures are conversations and calls that were kept once they were over, of all processes.
// Whose they are is the ID of a caller, or empty for everybody.
type Captures interface {
	// On reports whether anything is kept now.
	On() bool
	// Lost counts those that could not be kept since this process began.
	Lost() int
	// List returns those that began before a time, most of them, the newest first, without
	// their steps.
	List(ctx context.Context, whose string, before time.Time, most int) ([]session.Run, error)
	// Get returns one, by the key of its row, and whether there is one.
	Get(ctx context.Context, whose, key string) (session.Run, bool, error)
}

// SignIns are sign-ins at authorization servers: a [caller.Authenticator].
type SignIns interface {
	SignsIn() (issuers []string)
	SignIn(ctx context.Context, issuer, back, next string, again bool) (address string, a caller.Attempt, err error)
	SignedIn(r *http.Request, a caller.Attempt, back string) (caller.Caller, error)
}

// Console is the door. Make it with [New]; it is safe for concurrent use.
type Console struct {
	o       Options
	tries   signin.Tries
	origins *http.CrossOriginProtection

	costs    costs
	searches find.Searches
	pins     reading
}

// New returns a Console.
func New(o Options) *Console {
	return &Console{o: o, origins: http.NewCrossOriginProtection()}
}

// Routes returns the routes for those who are signed in.
func (c *Console) Routes() []door.Route {
	var routes []door.Route
	add := func(pattern string, shed door.Shed, serve func(*request) error) {
		routes = append(routes, door.Route{Pattern: pattern, Who: c.who, FormOf: c.form, Shed: shed, Serve: c.page(serve)})
	}
	add("GET "+Root+"{$}", door.ShedLast, c.overview)
	add("GET "+Root+"servers/{label}", door.ShedLast, c.server)
	add("GET "+Root+"tools", door.ShedLast, c.catalogue)
	add("GET "+Root+"tool", door.ShedLast, c.tool)
	add("POST "+Root+"call", door.ShedFirst, c.call)
	add("GET "+Root+"inbox", door.ShedNever, c.inbox)
	add("POST "+Root+"inbox/{id}", door.ShedNever, c.answer)
	add("POST "+Root+"pins", door.ShedNever, c.approvePin)
	add("GET "+Root+"live", door.ShedLast, c.live)
	add("GET "+Root+"live/{id}", door.ShedLast, c.conversation)
	add("GET "+Root+"usage", door.ShedLast, c.usage)
	add("GET "+Root+"live/of/{request}", door.ShedLast, c.trace)
	add("GET "+Root+"playground", door.ShedLast, c.playground)
	add("POST "+Root+"playground", door.ShedFirst, c.chat)
	add("GET "+Root+"audit", door.ShedLast, c.audit)
	add("GET "+Root+"audit/export", door.ShedFirst, c.export)
	add("POST "+Root+"audit/verify", door.ShedFirst, c.verify)
	add("GET "+Root+"configuration", door.ShedLast, c.configuration)
	add("POST "+Root+"configuration/reload", door.ShedNever, c.reload)
	add("POST "+Root+"sign-out", door.ShedNever, c.signOut)
	for sent, page := range formPages {
		add("GET "+Root+sent, door.ShedLast, func(r *request) error { return toForm(r, Root+page) })
	}
	add(Root, door.ShedLast, func(*request) error { return notFound("There is no such page.") })
	routes = append(routes, door.Route{
		Pattern: "GET " + Root + "events", Who: c.who, FormOf: c.form, Shed: door.ShedFirst, Serve: c.page(c.events),
		Lasts: func(*http.Request) bool { return true },
	})
	return routes
}

// formPages are the pages that have the forms, by where these are sent. Who has to sign in
// before a form of theirs does anything comes to the page that it is on.
var formPages = map[string]string{"call": "tool", "inbox/{id}": "inbox", "pins": "inbox", "audit/verify": "audit", "configuration/reload": "configuration"}

// toForm sends a browser to the page with a form.
func toForm(r *request, page string) error {
	if r.URL.RawQuery != "" {
		page += "?" + r.URL.RawQuery
	}
	http.Redirect(r.w, r.Request, page, http.StatusSeeOther)
	return nil
}

// A request is one of somebody who is signed in.
type request struct {
	*http.Request
	w    http.ResponseWriter
	who  caller.Caller
	lang string
}

// page answers a request, or says why not. What changes something must come from a page of
// ours, also where web pages of others may call the gateway.
func (c *Console) page(serve func(*request) error) door.Handler {
	return func(w http.ResponseWriter, r *http.Request, who caller.Caller) {
		guard(w)
		err := c.origins.Check(r)
		if err != nil {
			err = forbidden("This came from a page of another site, so nothing was done.")
		} else {
			err = serve(&request{r, w, who, language(r)})
		}
		if err != nil {
			door.Fail(c.o.Log, c.form(r), w, r, err)
		}
	}
}

// policyText is what browsers may do on our pages: nothing that is not ours, no script in a
// page, and no frame around it. Images of results come after a click, from memory.
const policyText = "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// guard sets what browsers hold every answer to.
func guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", policyText)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Add("Vary", "Accept-Language")
}

// language returns the language of the reader: English, or Chinese where the browser
// prefers it.
func language(r *http.Request) string {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), ";")
		switch word, _, _ := strings.Cut(tag, "-"); word {
		case "zh":
			return "zh"
		case "en":
			return "en"
		}
	}
	return "en"
}
