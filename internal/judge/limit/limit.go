// Package limit keeps callers from doing too much: so many calls in a time, so many
// at a time, so many calls and tokens in a day; for each caller, server or tool.
//
// Whoever makes a call asks [Limiter.Admit], or Enter, first and says afterwards what came of
// it. What is refused is a [dragoman.Problem] that says when to try again: a result
// for a model, and 429 with Retry-After at a door.
//
// Rates and what runs now are in memory, and begin anew with the process. What was
// used of a day is kept in the store, at most a second late, where there is one. Where
// several replicas serve on one store, all of it is theirs together: see shared.go.
package limit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/state/bounded"
	"github.com/dragoman-mcp/dragoman/internal/state/nodes"
	"github.com/dragoman-mcp/dragoman/internal/state/store"
	"github.com/dragoman-mcp/dragoman/internal/text/glob"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// Bounds of what is kept.
const (
	counterBytes = 64 << 20
	counterAge   = 2 * time.Hour // longer than a rate needs to be forgotten
	counterSize  = 256
	maxWaiting   = 128 // calls that wait for their turn at one counter
	// maxWait is how long a call of a tool waits for its turn.
	maxWait = 30 * time.Second
)

// Options are what a [Limiter] is made of.
type Options struct {
	// Limits are those of the configuration; none limits nothing.
	Limits []Limit
	// Store keeps what was used of a day over restarts; nil: memory does.
	Store *store.DB
	// Node is this process among the replicas on Store; nil where it is alone.
	Node *nodes.Node
	// CallTime is how long a call runs at most: so long after a replica has died, what ran
	// in it is taken to run. 0 is two minutes.
	CallTime time.Duration
	// Log is told when the store cannot be used; nil tells nobody.
	Log *slog.Logger
}

// A Limiter admits calls. Make it with [New]; it is safe for concurrent use.
type Limiter struct {
	log   *slog.Logger
	store *store.DB // nil where memory is enough

	node     *nodes.Node // nil where limits are this process's alone
	callTime time.Duration

	mu       sync.Mutex
	limits   []limit               // replaced, never changed
	since    time.Time             // when they were replaced
	waiting  map[*counter]struct{} // at which somebody waits
	counters bounded.Map[*counter] // by caller; what is shared by all, by none
	days     days
	leased   map[*counter]held // counters that have slots in the store
	renewing *time.Timer       // runs while there are any
	closed   bool
}

// limit is a [Limit] in the form in which it is asked.
type limit struct {
	Limit
	name  string
	rate  rate.Limit
	burst int
	words string // the rate, for a person
	per   struct{ caller, server, tool bool }
}

// New returns a Limiter. ctx bounds the reading of what was used of today.
func New(ctx context.Context, o Options) (*Limiter, error) {
	l := &Limiter{log: o.Log, store: o.Store, node: o.Node, callTime: cmp.Or(o.CallTime, 2*time.Minute), leased: map[*counter]held{}, waiting: map[*counter]struct{}{}, counters: bounded.Map[*counter]{Bytes: counterBytes, Age: counterAge}}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.days.init()
	if err := l.Use(ctx, o.Limits); err != nil {
		return nil, err
	}
	return l, nil
}

// Check reports what is wrong with limits, alone and together.
func Check(limits []Limit) error {
	if err := CheckNames(limits); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	for i, each := range limits {
		if err := each.Validate(); err != nil {
			return fmt.Errorf("limits[%d]: %w", i, err)
		}
	}
	return nil
}

// Use makes these the limits. A limit of the name of another one goes on with its count;
// a new one counts what is admitted from now on. Who waits for a turn is judged anew. ctx
// bounds the reading of what was used of today. After an error all is as it was.
func (l *Limiter) Use(ctx context.Context, limits []Limit) error {
	if err := Check(limits); err != nil {
		return err
	}
	daily, all := false, make([]limit, len(limits))
	for i, each := range limits {
		all[i] = made(each, i)
		daily = daily || each.Calls > 0 || each.Tokens > 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if daily && l.store != nil && l.days.db == nil {
		if err := l.days.load(ctx, l.store); err != nil {
			return fmt.Errorf("limits: reading what was used of today: %w", err)
		}
	}
	l.limits, l.since = all, time.Now()
	for c := range l.waiting {
		c.wakeAll()
	}
	clear(l.waiting)
	return nil
}

func made(from Limit, place int) limit {
	l := limit{Limit: from, name: from.called(place), rate: rate.Inf}
	l.Of = slices.Clone(from.Of)
	for i, pattern := range l.Of {
		if kind, path := permission.CutPattern(pattern); kind == "route" {
			l.Of[i] = "route:" + spelledPlainly(path)
		}
	}
	if from.Rate != "" {
		n, each, _ := parseRate(from.Rate)
		l.rate, l.burst = rate.Limit(float64(n)/each.Seconds()), from.Burst
		if l.burst == 0 {
			l.burst = n
		}
		l.words = fmt.Sprintf("%d calls a %s", n, map[time.Duration]string{time.Second: "second", time.Minute: "minute", time.Hour: "hour"}[each])
	}
	if len(from.Per) == 0 {
		l.per.caller = true
	}
	for _, per := range from.Per {
		l.per.caller = l.per.caller || per == perCaller
		l.per.server = l.per.server || per == perServer
		l.per.tool = l.per.tool || per == perTool
	}
	return l
}

// A Use is what somebody is about to do.
type Use struct {
	Caller caller.Caller
	// Kind is that of a right: tool, prompt, resource, template, skill, model, route;
	// or server for a request to a server as such.
	Kind string
	// Server is the label of a server, and Name label__original, or the name of a
	// model, or the path of a route.
	Server, Name string
	// Again says that it was admitted before, and left without having run, as what somebody
	// was asked about: its place in each rate it has already.
	Again bool
}

// Call is the use that a call of a toolset is.
func Call(who caller.Caller, call dragoman.Call) Use {
	switch {
	case call.Tool != nil:
		return Use{Caller: who, Kind: "tool", Server: call.Tool.Server, Name: qualified.Name(call.Tool.Server, call.Tool.Original)}
	case call.Entry != nil:
		return Use{Caller: who, Kind: string(call.Entry.Kind), Server: call.Entry.Server, Name: qualified.Name(call.Entry.Server, call.Entry.Original)}
	}
	return Use{Caller: who, Kind: "server", Server: call.Server, Name: qualified.Name(call.Server, "")}
}

// Model is the use of a model.
func Model(who caller.Caller, name string) Use { return Use{Caller: who, Kind: "model", Name: name} }

// Route is the use of a route that is relayed, whatever the case of its path, and with or
// without a slash at the end: APIs that look at neither are many.
func Route(who caller.Caller, path string) Use {
	return Use{Caller: who, Kind: "route", Name: spelledPlainly(path)}
}

func spelledPlainly(path string) string { return strings.ToLower(strings.TrimRight(path, "/")) }

// counts reports whether a limit is for a use.
func (l *limit) counts(u *Use) bool {
	for i, patterns := 0, l.Caller; len(patterns) > 0; i++ {
		if i == len(patterns) {
			return false
		}
		if name := u.Caller.RuleName(); glob.Match(patterns[i], u.Caller.ID) || name != "" && glob.Match(patterns[i], name) {
			break
		}
	}
	if len(l.Of) == 0 {
		return true
	}
	for _, pattern := range l.Of {
		if permission.Matches(pattern, u.Kind, u.Name) {
			return true
		}
	}
	return false
}

// key names the count that a use belongs to, among those of the limit.
func (l *limit) key(u *Use) (owner, key string) {
	var b strings.Builder
	b.WriteString(l.name)
	if l.per.caller {
		owner = u.Caller.ID
	}
	if l.per.server {
		b.WriteString("\nserver " + u.Server)
	}
	if l.per.tool {
		b.WriteString("\n" + u.Kind + " " + countedName(u.Name))
	}
	return owner, b.String()
}

// maxCounted is the longest name that counts have as it is, in bytes. Clients make names of
// models and URIs as long as they like; counts are kept in memory all day, and their names
// are keys at the store, where PostgreSQL takes none of more than some 2,000.
const maxCounted = 500

// countedName is what a count calls a name.
func countedName(name string) string {
	if len(name) <= maxCounted {
		return name
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))
}

// none reports whether nothing is limited.
func (l *Limiter) none() bool { return l == nil || len(l.all()) == 0 }

// Enter admits a call of a toolset, as [Limiter.Admit] does. again says whether it was admitted
// before, see [Use], and is asked only where a rate counts the call.
func (l *Limiter) Enter(ctx context.Context, who caller.Caller, call *dragoman.Call, again func() bool) (leave func(dragoman.Result), problem *dragoman.Problem) {
	if l.none() {
		return func(dragoman.Result) {}, nil
	}
	u := Call(who, *call)
	rated := slices.ContainsFunc(l.all(), func(each limit) bool { return each.Rate != "" && each.counts(&u) })
	u.Again = rated && again()
	return l.Admit(ctx, u)
}

// Admit admits a use, or says why not and when to try again. Calls of tools wait up
// to 30 seconds where too many run now; what cannot be admitted at all is refused at
// once. leave must be called with what came of it, once; it is never nil.
func (l *Limiter) Admit(ctx context.Context, u Use) (leave func(dragoman.Result), problem *dragoman.Problem) {
	if l.none() {
		return func(dragoman.Result) {}, nil
	}
	wait := maxWait
	if u.Kind == "model" || u.Kind == "route" {
		wait = 0
	}
	now := time.Now()
	a := &admission{of: l, use: &u, began: now, until: now.Add(wait)}
	if problem := a.enter(ctx); problem != nil {
		return func(dragoman.Result) {}, problem
	}
	var once sync.Once
	return func(res dragoman.Result) { once.Do(func() { a.leave(res.Ran != dragoman.RanNot) }) }, nil
}

// CountsTokens reports whether the tokens that a caller uses of a model count towards
// any limit.
func (l *Limiter) CountsTokens(who caller.Caller, model string) bool {
	u := Model(who, model)
	return l != nil && slices.ContainsFunc(l.all(), func(each limit) bool { return each.Tokens > 0 && each.counts(&u) })
}

// mostTokens is what one answer counts at most, whatever its API says: a sum of such
// numbers must not begin anew at its other end.
const mostTokens = 1 << 40

// Tokens counts tokens that a caller used of a model, once they are known.
func (l *Limiter) Tokens(who caller.Caller, model string, n int64) {
	if l == nil || n <= 0 {
		return
	}
	n = min(n, mostTokens)
	u := Model(who, model)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.limits {
		if each := &l.limits[i]; each.Tokens > 0 && each.counts(&u) {
			owner, key := each.key(&u)
			if used := l.days.of(time.Now(), who.ID, owner, key); used != nil {
				l.days.add(used, 0, n)
			}
		}
	}
	l.keepSoon()
}

// Spent says that the tokens of a day are used up that a caller has of a model; nil where they
// are not. It admits nothing, and asks no other replica.
func (l *Limiter) Spent(who caller.Caller, model string) *dragoman.Problem {
	if l == nil {
		return nil
	}
	u, now := Model(who, model), time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.limits {
		each := l.limits[i]
		if each.Tokens == 0 || !each.counts(&u) {
			continue
		}
		each.Calls = 0 // those of a day are of what is admitted
		owner, key := each.key(&u)
		if used := l.days.of(now, who.ID, owner, key); used != nil {
			if problem := each.spent(&u, used, now); problem != nil {
				return problem
			}
		}
	}
	return nil
}

// all returns the limits as they are now.
func (l *Limiter) all() []limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limits
}

// counter returns the counter of a limit for a use. l.mu is held.
func (l *Limiter) counter(each *limit, owner, key string) *counter {
	c, ok := l.counters.Get(owner, key)
	if !ok {
		c = &counter{pace: rate.NewLimiter(each.rate, each.burst), lease: lease{name: countName(owner, key)}}
		l.counters.Put(owner, key, c, int64(len(owner)+len(key)+counterSize))
	}
	switch pace, burst := l.share(each); {
	case c.pace.Limit() == rate.Inf && pace != rate.Inf: // nothing was counted of a rate, so that all of it is there
		c.pace = rate.NewLimiter(pace, burst)
	case !c.paced(pace, burst):
		c.lease.empty = time.Time{} // what the store said was of another rate
		since := l.since            // and not now: nobody has asked meanwhile
		if l.shared() {
			since = time.Now() // replicas come and go
		}
		c.pace.SetLimitAt(since, pace)
		c.pace.SetBurstAt(since, burst)
	}
	return c
}

// seconds words a time for a person, rounded up.
func seconds(d time.Duration) string {
	n := int(math.Ceil(d.Seconds()))
	switch {
	case n <= 1:
		return "a second"
	case n < 120:
		return fmt.Sprintf("%d seconds", n)
	case n < 2*60*60:
		return fmt.Sprintf("%d minutes", (n+59)/60)
	}
	return fmt.Sprintf("%d hours", (n+3599)/3600)
}
