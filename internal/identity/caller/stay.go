package caller

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/identity/accesstoken"
	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
)

// ErrEnded is why a request ends that its caller may not make any more: a [*Refusal].
var ErrEnded error = &Refusal{
	Status: http.StatusUnauthorized, Code: "invalid_api_key",
	Message: "The request was ended: what it was made with is not good any more, or not for all that it was when the request began.",
}

// present are the callers who showed keys of the file, with their requests that run.
// One is forgotten once its key is not good any more, so there are no more of them
// than there were keys. The zero value is ready.
type present struct {
	mu   sync.Mutex
	keys map[string]*presence // by the caller's ID
}

type presence struct {
	record  apikey.Record // as it was when the key was shown
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
	if before := p.keys[caller]; before != nil {
		return same(before.record, r)
	}
	if p.keys == nil {
		p.keys = map[string]*presence{}
	}
	p.keys[caller] = &presence{record: r, running: map[*context.CancelCauseFunc]struct{}{}}
	return true
}

// end ends all requests of a caller that run, and forgets its key.
func (p *present) end(caller string) {
	var cuts []*context.CancelCauseFunc
	p.mu.Lock()
	if found := p.keys[caller]; found != nil {
		cuts = slices.Collect(maps.Keys(found.running))
		delete(p.keys, caller)
	}
	p.mu.Unlock()
	for _, cut := range cuts {
		(*cut)(ErrEnded)
	}
}

// Stay returns a context for a request of a caller who was just recognised. It ends,
// because of [ErrEnded], once the caller's key is not in the file of keys as it was when
// it was shown, or has expired: within two seconds, where [Authenticator.Watch] runs. Other keys
// and tokens are as good as they were when the request came. leave must be called when
// the request is over.
func (f *Authenticator) Stay(ctx context.Context, who Caller) (_ context.Context, leave func()) {
	if !f.Required() || who.Issuer != "" || f.fixed.has(who.ID) {
		return ctx, func() {}
	}
	ctx, cut := context.WithCancelCause(ctx)
	p := &f.present
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.keys[who.ID]
	if in == nil || f.isRevoked(who.ID) || !in.record.Expires.Equal(who.Expires) || !slices.Equal(in.record.Rights, who.Grants) {
		cut(ErrEnded) // it was changed this very moment
		return ctx, func() {}
	}
	in.running[&cut] = struct{}{}
	return ctx, func() {
		p.mu.Lock()
		delete(in.running, &cut)
		p.mu.Unlock()
		cut(nil)
	}
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
	if file := f.place(); file != nil {
		file.Watch(ctx, f.look)
	}
}

func (f *Authenticator) look() {
	file := f.keys()
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
	for caller, in := range p.keys {
		if now, ok := keys[in.record.ID]; !ok || now.Expired() || !same(now, in.record) {
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
