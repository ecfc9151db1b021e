package credential

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/oauth2"

	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// kept has the tokens of a login, those of the store.
type kept struct {
	how     string // a person logs in
	account Account
	store   Store // nil: nothing is kept
	client  *http.Client

	failed time.Time // when renewing failed last
	reason error
	spent  secret.Text // the refresh token that it failed with

	last refusedToken
}

func (k *kept) entry() (Entry, error) {
	if k.store == nil {
		return Entry{}, ErrNone
	}
	return k.store.Get(k.account)
}

func (k *kept) basis() string {
	e, err := k.entry()
	if err != nil {
		return ""
	}
	return e.Access.Reveal()
}

func (k *kept) token(ctx context.Context) (string, error) {
	e, err := k.entry()
	switch {
	case errors.Is(err, ErrNone):
		return "", nil
	case err != nil:
		return "", err
	case e.Refresh.IsZero() || e.Expires.IsZero() || e.dueIn() > 0:
		return e.Access.Reveal(), nil
	case e.renewing(time.Now()) && time.Until(e.Expires) > 0:
		return e.Access.Reveal(), nil // it is good until that is done
	}
	if renewed, err := k.renew(ctx, e); err == nil {
		return renewed.Access.Reveal(), nil
	}
	return e.Access.Reveal(), nil // the server will say that it has ended, and then it is tried again
}

func (k *kept) another(ctx context.Context, shown string, _ *http.Request, res *http.Response) (string, error) {
	e, err := k.entry()
	switch {
	case errors.Is(err, ErrNone):
		return "", k.wanted(nil)
	case err != nil:
		return "", err
	case e.Access.Reveal() != shown:
		return e.Access.Reveal(), nil // another process has renewed it since
	case res.StatusCode == http.StatusForbidden:
		return "", k.insufficient(res)
	case e.Refresh.IsZero():
		return "", k.wanted(errors.New("it has ended"))
	case k.last.lately(shown):
		return "", k.wanted(errUseless)
	}
	e, err = k.renew(ctx, e)
	return e.Access.Reveal(), err
}

// insufficient remembers what a server wants more than there is: the next login asks for it.
func (k *kept) insufficient(res *http.Response) *LoginError {
	_, err := k.store.Update(k.account, func(e *Entry, _ time.Time) error {
		e.Scopes = union(e.Scopes, challenged(res))
		return nil
	})
	if err != nil {
		return k.wanted(nil)
	}
	return k.wanted(errors.New("it does not suffice for what was asked"))
}

func (k *kept) useless(token string, res *http.Response) *LoginError {
	if res.StatusCode == http.StatusForbidden {
		return k.insufficient(res)
	}
	k.last = refusedToken{secret.New(token), time.Now()}
	return k.wanted(errUseless)
}

// wanted says that somebody has to log in, and how.
func (k *kept) wanted(err error) *LoginError { return &LoginError{k.how, err} }

// renew gets new tokens with the refresh token, and keeps them. Where that failed it
// is not tried again for a while.
func (k *kept) renew(ctx context.Context, e Entry) (Entry, error) {
	if time.Since(k.failed) < retryAfter && k.spent == e.Refresh {
		return e, k.reason
	}
	renewed, err := k.claimed(ctx, e)
	if err != nil && ctx.Err() == nil {
		k.failed, k.reason, k.spent = time.Now(), err, e.Refresh
	}
	return renewed, err
}

// A refresh token may be good once (OAuth 2.1 section 4.3.1): whoever uses it says so
// in the store, for all connections and processes, and others wait for what comes of
// it.
const (
	claimLife  = 45 * time.Second      // more than an exchange can take; see newClient
	claimEvery = 50 * time.Millisecond // how soon it is looked again whether it is done
	// claimAtLeast is how often it is looked in the end: each look writes.
	claimAtLeast = 400 * time.Millisecond
	// claimGrace is how long a claim that is over is left to whoever made it. While the store
	// is away nobody ends a claim, and whoever has the new tokens keeps them within keepEvery
	// of its return.
	claimGrace = 3 * keepEvery
)

var errClaimed = errors.New("somebody else renews it")

// renewing reports whether somebody is about to renew the entry.
func (e *Entry) renewing(now time.Time) bool { return now.Sub(e.Renewing).Abs() < claimLife }

// claimed renews an entry, or waits until somebody else has.
func (k *kept) claimed(ctx context.Context, old Entry) (Entry, error) {
	var over time.Time // when it was seen first that the claim is over
	for pause := claimEvery; ; pause = min(2*pause, claimAtLeast) {
		now, err := k.store.Update(k.account, func(now *Entry, at time.Time) error {
			switch {
			case !now.same(&old):
			case now.renewing(at):
				over = time.Time{}
				return errClaimed
			case !now.Renewing.IsZero() && over.IsZero():
				over = time.Now()
				return errClaimed
			case !now.Renewing.IsZero() && time.Since(over) < claimGrace:
				return errClaimed
			default:
				now.Renewing = at
			}
			return nil
		})
		switch {
		case errors.Is(err, errClaimed):
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return old, context.Cause(ctx)
			}
		case errors.Is(err, ErrNone):
			return old, k.wanted(nil) // forgotten meanwhile
		case err != nil:
			return old, err
		case !now.same(&old):
			return now, nil // somebody else has renewed it
		default:
			return k.finished(ctx, now)
		}
	}
}

// finished is exchange, which goes on where whoever asked for it goes away: what comes
// of it is the only refresh token that is good.
func (k *kept) finished(ctx context.Context, old Entry) (Entry, error) {
	var now Entry
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		now, err = k.exchange(context.WithoutCancel(ctx), old)
	}()
	select {
	case <-done:
		return now, err
	case <-ctx.Done():
		return old, context.Cause(ctx)
	}
}

// same reports whether two entries have the same tokens.
func (e *Entry) same(other *Entry) bool {
	return e.Access == other.Access && e.Refresh == other.Refresh
}

// exchange gets new tokens for an entry that nobody else renews.
func (k *kept) exchange(ctx context.Context, old Entry) (Entry, error) {
	config := old.config()
	ctx = context.WithValue(ctx, oauth2.HTTPClient, k.client)
	// The library's own way to refresh cannot name the resource (RFC 8707 section
	// 2.2). A parameter without a value counts as left out (RFC 6749 section 3.2).
	token, err := config.Exchange(ctx, "", oauth2.SetAuthURLParam("grant_type", "refresh_token"),
		oauth2.SetAuthURLParam("refresh_token", old.Refresh.Reveal()), oauth2.SetAuthURLParam("resource", old.Resource))
	if err == nil {
		err = check(token)
	}
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if ok && refused.ErrorCode != "" && !away(refused) {
		err = k.wanted(errors.New(known(refused.ErrorCode)))
	} else if err != nil {
		err = errors.New("the authorization server cannot be asked for a new token")
	}
	renewed := func(e *Entry) {
		e.Renewing = time.Time{}
		if err == nil {
			e.got(token)
			if token.RefreshToken != "" {
				e.Refresh = secret.New(token.RefreshToken) // the old one is good no more
			}
		}
	}
	keep := func() (Entry, error) {
		return k.store.Update(k.account, func(now *Entry, _ time.Time) error {
			if now.same(&old) { // else somebody logged in meanwhile
				renewed(now)
			}
			return nil
		})
	}
	now, keeping := keep()
	switch {
	case errors.Is(keeping, ErrNone):
		return old, k.wanted(nil) // forgotten meanwhile, and so it stays
	case keeping != nil && err == nil:
		go untilKept(keep)
		now = old
		renewed(&now)
	case keeping != nil:
		return old, keeping
	}
	return now, err
}

// How often, and for how long, it is tried to keep new tokens where the store is away.
const (
	keepEvery = time.Second
	keepFor   = 10 * time.Minute
)

// untilKept keeps new tokens once that can be done: nobody else has them, and those that the
// store has may be good no more.
func untilKept(keep func() (Entry, error)) {
	pause := claimEvery
	for until := time.Now().Add(keepFor); time.Now().Before(until); pause = min(2*pause, keepEvery) {
		<-time.After(pause)
		if _, err := keep(); err == nil || errors.Is(err, ErrNone) {
			return
		}
	}
}

// config is the client that an entry was made by. One without a secret shows itself in one
// way alone: looking for another one would be the same request twice, with a refresh token
// that is good once.
func (e *Entry) config() *oauth2.Config {
	style := oauth2.AuthStyle(e.AuthStyle)
	if e.ClientSecret.IsZero() {
		style = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: e.ClientID, ClientSecret: e.ClientSecret.Reveal(),
		Endpoint: oauth2.Endpoint{AuthURL: e.AuthURL, TokenURL: e.TokenURL, AuthStyle: style},
	}
}
