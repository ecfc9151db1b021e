package caller

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

// ErrEnded is why a request ends that its caller may not make any more: a [*Refusal].
var ErrEnded error = &Refusal{
	Status: http.StatusUnauthorized, Code: "invalid_api_key",
	Message: "The request was ended: what it was made with is not good any more, or not for all that it was when the request began.",
}

// present are the callers who showed keys of the file, and all others who have requests
// that run, with these. One with such a key is forgotten once that is not good any more,
// the others when they leave, so there are no more of them than there were keys and are
// requests. The zero value is ready.
type present struct {
	mu  sync.Mutex
	all map[string]*presence // by the caller's ID
}

type presence struct {
	record  *apikey.Record // of a key of the file, as it was when it was shown; else nil
	issuer  string         // of a token; else empty
	running map[*context.CancelCauseFunc]struct{}
}

// same reports whether a key is what it was: the same one, for the same person, with
// the same rights.
func same(a, b apikey.Record) bool {
	return a.Hash == b.Hash && a.User == b.User && a.Name == b.Name && a.Expires.Equal(b.Expires) && slices.Equal(a.Rights, b.Rights)
}

// saw notes that a key was shown, and was found to be good. It reports whether it is as
// it was before.
func (p *present) saw(caller string, r apikey.Record) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.all[caller]; before != nil {
		return before.record != nil && same(*before.record, r)
	}
	p.add(caller).record = &r
	return true
}

// add adds a caller. mu is held.
func (p *present) add(caller string) *presence {
	if p.all == nil {
		p.all = map[string]*presence{}
	}
	in := &presence{running: map[*context.CancelCauseFunc]struct{}{}}
	p.all[caller] = in
	return in
}

// end ends all requests of a caller that run, and forgets the caller.
func (p *present) end(caller string) {
	var cuts []*context.CancelCauseFunc
	p.mu.Lock()
	if found := p.all[caller]; found != nil {
		cuts = slices.Collect(maps.Keys(found.running))
		delete(p.all, caller)
	}
	p.mu.Unlock()
	for _, cut := range cuts {
		(*cut)(ErrEnded)
	}
}

// unlike returns whose keys and tokens are not good any more, or not as they were, once
// this is accepted in place of that.
func (p *present) unlike(before, now *Accepted) (over []string) {
	for id := range before.fixed.ids {
		if !now.fixed.has(id) {
			over = append(over, id)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for caller, in := range p.all {
		switch {
		case in.issuer != "" && !reflect.DeepEqual(before.oauth.issuer(in.issuer), now.oauth.issuer(in.issuer)),
			in.record != nil && now.place == nil:
			over = append(over, caller)
		}
	}
	return over
}

// Stay returns a context for a request of a caller who was just recognised. It ends,
// because of [ErrEnded], once the caller could not come any more as they came: the key is
// not in the file of keys as it was when it was shown, or has expired (within two seconds,
// where [Authenticator.Watch] runs), or what is accepted was replaced ([Authenticator.Use]).
// Tokens are as good as they were when the request came. leave must be called when the
// request is over.
func (f *Authenticator) Stay(ctx context.Context, who Caller) (_ context.Context, leave func()) {
	ctx, cut := context.WithCancelCause(ctx)
	p := &f.present
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.all[who.ID]
	if !f.stands(who, in) || f.isRevoked(who.ID) {
		cut(ErrEnded) // it was changed this very moment
		return ctx, func() {}
	}
	if in == nil {
		in = p.add(who.ID)
		in.issuer = who.Issuer
	}
	in.running[&cut] = struct{}{}
	return ctx, func() {
		p.mu.Lock()
		delete(in.running, &cut)
		if len(in.running) == 0 && in.record == nil && p.all[who.ID] == in {
			delete(p.all, who.ID)
		}
		p.mu.Unlock()
		cut(nil)
	}
}

// stands reports whether a caller who was recognised a moment ago would be recognised as
// the same one now. present.mu is held.
func (f *Authenticator) stands(who Caller, in *presence) bool {
	now := f.now.Load()
	switch {
	case who.Issuer != "":
		from := now.oauth.issuer(who.Issuer)
		return from != nil && from.stands(who)
	case who.IsLocal():
		return !f.Required()
	case now.fixed.has(who.ID):
		return true
	}
	return now.place != nil && in != nil && in.record != nil && in.record.Expires.Equal(who.Expires) && slices.Equal(in.record.Rights, who.Grants)
}

// Until returns a context for what would never end by itself: it ends, because of
// [ErrEnded], when what the caller showed ends to be good.
func (c Caller) Until(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case c.Expires.IsZero():
		return context.WithCancel(ctx)
	case c.Issuer != "":
		return context.WithDeadlineCause(ctx, c.Expires.Add(accesstoken.Leeway), ErrEnded)
	}
	return context.WithDeadlineCause(ctx, c.Expires, ErrEnded)
}

// Watch looks at the file of keys each second until ctx ends, and ends what runs for
// those whose keys are not good any more. While the file cannot be used, nobody comes
// in, and nobody is put out. No request looks at the file meanwhile, except for a key
// that is not known yet.
func (f *Authenticator) Watch(ctx context.Context) {
	for ctx.Err() == nil {
		f.watch(ctx, f.now.Load().place)
	}
}

// watch looks at a file of keys for as long as it counts.
func (f *Authenticator) watch(ctx context.Context, p *place) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	look := func() {
		if f.now.Load().place != p {
			cancel()
			return
		}
		f.look()
	}
	if p != nil {
		p.file.Watch(ctx, look)
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			look()
		case <-ctx.Done():
		}
	}
}

func (f *Authenticator) look() {
	file := f.file(f.now.Load())
	if file == nil {
		return
	}
	keys, err := file.Keys()
	if err != nil {
		return
	}
	p := &f.present
	var over []string
	p.mu.Lock()
	for caller, in := range p.all {
		if in.record == nil {
			continue
		}
		if now, ok := keys[in.record.ID]; !ok || now.Expired() || !same(now, *in.record) {
			over = append(over, caller)
		}
	}
	p.mu.Unlock()
	for _, caller := range over {
		f.end(caller)
	}
}

// isRevoked reports whether a key is good nowhere.
func (f *Authenticator) isRevoked(id string) bool { return f.Revoked != nil && f.Revoked(id) }

// Revoke ends what runs for a key that was revoked this moment.
func (f *Authenticator) Revoke(id string) { f.end(apikey.CallerPrefix + id) }

// end ends what runs for a caller.
func (f *Authenticator) end(caller string) {
	f.present.end(caller)
	if f.Ended != nil {
		f.Ended(caller)
	}
}
