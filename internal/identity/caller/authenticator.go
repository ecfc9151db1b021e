package caller

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// An Authenticator recognises callers. Make it with [New]; it is safe for concurrent use.
type Authenticator struct {
	// Shown is told of each access token that is good, and whose it is; nil tells
	// nobody. A token ends with expires, which may be zero. Nothing else here keeps
	// tokens, or hands them on. It is set before the first request.
	Shown func(caller, issuer, token string, expires time.Time)
	// Ended is told of each caller of whom what they showed is not good any more, or not
	// as it was, after the requests that [Authenticator.Stay] knows were ended; nil is
	// told nothing. It is set before the first request.
	Ended func(caller string)
	// Revoked reports whether a key, by its id or its caller's, is good nowhere, whatever
	// says it is; nil where none is. It is set before the first request.
	Revoked func(id string) bool
	// Guarded is called when callers have to say who they are from now on, who did not
	// before; nil is not. It is set before the first request.
	Guarded func()

	keys    []secret.Text // beside those of the configuration
	now     atomic.Pointer[Accepted]
	asks    atomic.Bool // callers have to say who they are; that never ends
	present present
}

// New returns an Authenticator for a configuration. keys are API keys beside those of the
// configuration; empty ones are none. A file of keys that cannot be used is an
// error now, and refuses its callers later.
func New(c Config, keys ...secret.Text) (*Authenticator, error) {
	f := &Authenticator{keys: keys}
	a, err := f.Judge(c)
	if err != nil {
		return nil, err
	}
	f.now.Store(a)
	f.asks.Store(a.asks())
	return f, nil
}

// Close ends connections to authorization servers that are idle.
func (f *Authenticator) Close() { f.now.Load().oauth.close() }

// Required reports whether callers have to say who they are. Otherwise everybody is
// [Local]. A file of keys asks everybody, though it be empty; and who has asked once
// does so to the end, though there be no keys any more, and nobody comes in.
func (f *Authenticator) Required() bool { return f.asks.Load() }

// Recognise returns who makes a request, by its Authorization header ("Bearer", as
// OpenAI and MCP clients send it) or its api-key header (as Azure's clients do). The
// error is a [*Refusal].
func (f *Authenticator) Recognise(r *http.Request) (Caller, error) {
	now := f.now.Load()
	file := f.file(now)
	if !f.Required() {
		return Local, nil
	}
	shown, refusal := credential(r)
	if refusal != nil {
		return Caller{}, refusal
	}
	who, err := f.byKey(now, file, shown.text)
	switch {
	case err == nil:
		return who, nil
	case errors.Is(err, errKeysFile):
		return Caller{}, unavailable(err, time.Second)
	case now.oauth != nil && shown.text == "":
		return Caller{}, now.oauth.unknown(r)
	case now.oauth != nil && shown.bearer && !apikey.Is(shown.text):
		who, err := now.oauth.recognise(r, shown.text)
		if err == nil && f.Shown != nil {
			f.Shown(who.ID, who.Issuer, shown.text, who.Expires)
		}
		return who, err
	}
	c := challenge{}
	if now.oauth != nil {
		c = now.oauth.challenge(r.URL.EscapedPath(), "invalid_token", err.Error(), nil)
	}
	return Caller{}, &Refusal{
		Status: http.StatusUnauthorized, Code: "invalid_api_key", Challenge: c.String(), Err: err,
		Message: "This gateway needs an API key: send it as \"Authorization: Bearer …\". What came was: " + err.Error() + ".",
	}
}

var errNothing = errors.New("no API key")

// byKey finds out whose an API key is.
func (f *Authenticator) byKey(now *Accepted, file *apikey.File, shown string) (Caller, error) {
	if shown == "" {
		return Caller{}, errNothing
	}
	if who, ok := now.fixed.recognise(shown); ok {
		if f.isRevoked(who.ID) {
			return Caller{}, errUnknownKey
		}
		return who, nil
	}
	if file != nil && apikey.Is(shown) {
		return f.filed(file, shown)
	}
	return Caller{}, errUnknownKey
}

// A showing is what a request shows; its text is empty for nothing.
type showing struct {
	text   string
	bearer bool // as Authorization: Bearer
}

// credential returns what a request shows. Two that differ would leave it to chance
// which one counts: for whoever looked at the request before us, too.
func credential(r *http.Request) (showing, *Refusal) {
	bearers, keys := r.Header.Values("Authorization"), r.Header.Values(keyHeader(r))
	shown := showing{text: r.Header.Get(keyHeader(r))}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		shown = showing{strings.TrimSpace(token), true}
	}
	if len(bearers) > 1 || len(keys) > 1 || len(keys) == 1 && keys[0] != shown.text {
		return showing{}, &Refusal{
			Status: http.StatusBadRequest, Code: "ambiguous_credentials",
			Challenge: challenge{}.with("error", "invalid_request").String(),
			Message:   "The request carries more than one key or token, in Authorization or Api-Key: send one.",
		}
	}
	return shown, nil
}

// SpeaksMessages reports whether a request is one of Anthropic's API: by its path, and of
// models, which other APIs have there too, by a header.
func SpeaksMessages(r *http.Request) bool {
	path := r.URL.Path
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/") ||
		(path == "/v1/models" || strings.HasPrefix(path, "/v1/models/")) && r.Header.Get("Anthropic-Version") != ""
}

// keyHeader is the header in which the clients of a route may have a key, beside
// Authorization: Anthropic's have one of their own.
func keyHeader(r *http.Request) string {
	if SpeaksMessages(r) {
		return "X-Api-Key"
	}
	return "Api-Key"
}
