package caller

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/identity/apikey"
	"github.com/dragoman-mcp/dragoman/internal/state/watchedfile"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// An Authenticator recognises callers. Make it with [New]; it is safe for concurrent use.
type Authenticator struct {
	// Shown is told of each access token that is good, and whose it is; nil tells
	// nobody. A token ends with expires, which may be zero. Nothing else here keeps
	// tokens, or hands them on. It is set before the first request.
	Shown func(caller, issuer, token string, expires time.Time)
	// Ended is told of each caller whose key is not good any more, or not as it was,
	// after the requests that [Authenticator.Stay] knows were ended; nil is told nothing. It is
	// set before the first request.
	Ended func(caller string)
	// Awaited is where a file of keys counts as soon as there is one; empty where the
	// configuration names one, or none can be. It is set before the first request.
	Awaited string
	// Revoked reports whether a key, by its id or its caller's, is good nowhere, whatever
	// says it is; nil where none is. It is set before the first request.
	Revoked func(id string) bool

	fixed   fixed
	file    *apikey.File
	late    atomic.Pointer[apikey.File] // the one that is awaited
	came    atomic.Bool                 // the one that is awaited was seen
	oauth   *oauth                      // nil without authorization servers
	present present
}

// New returns an Authenticator for a configuration. keys are API keys beside those of the
// configuration; empty ones are none. A file of keys that cannot be used is an
// error now, and refuses its callers later.
func New(c Config, keys ...secret.Text) (*Authenticator, error) {
	f := &Authenticator{fixed: newFixed(append(keys[:len(keys):len(keys)], c.APIKeys...))}
	var err error
	if c.KeysFile != "" {
		if f.file, err = apikey.Open(c.KeysFile); err != nil {
			return nil, fmt.Errorf("auth.keys_file: %w%s", err, advice(err))
		}
	}
	if len(c.OAuth) > 0 {
		if f.oauth, err = newOAuth(c); err != nil {
			return nil, fmt.Errorf("auth.oauth: %w", err)
		}
	}
	return f, nil
}

// advice is what can be done about a file of keys that cannot be opened.
func advice(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; dragoman keys new makes it"
	case errors.Is(err, fs.ErrPermission):
		return "; let the user read it whom the gateway runs as: it holds hashes alone"
	}
	return ""
}

// Close ends connections to authorization servers that are idle.
func (f *Authenticator) Close() {
	if f.oauth != nil {
		f.oauth.client.CloseIdleConnections()
	}
}

// Required reports whether callers have to say who they are. Otherwise everybody is
// [Local]. A file of keys asks everybody, though it be empty.
func (f *Authenticator) Required() bool { return len(f.fixed) > 0 || f.file != nil || f.oauth != nil }

// TooLate reports whether nobody is recognised before the gateway starts again: it began
// without keys, and there is a file of them now.
func (f *Authenticator) TooLate() bool { return !f.Required() && f.keys() != nil }

// Recognise returns who makes a request, by its Authorization header ("Bearer", as
// OpenAI and MCP clients send it) or its api-key header (as Azure's clients do). The
// error is a [*Refusal].
func (f *Authenticator) Recognise(r *http.Request) (Caller, error) {
	file := f.keys()
	switch {
	case f.Required():
	case file != nil:
		return Caller{}, tooLate(file)
	default:
		return Local, nil
	}
	shown, refusal := credential(r)
	if refusal != nil {
		return Caller{}, refusal
	}
	who, err := f.byKey(file, shown.text)
	switch {
	case err == nil:
		return who, nil
	case errors.Is(err, errKeysFile):
		return Caller{}, unavailable(err, time.Second)
	case f.oauth != nil && shown.text == "":
		return Caller{}, f.oauth.unknown(r)
	case f.oauth != nil && shown.bearer && !apikey.Is(shown.text):
		who, err := f.oauth.recognise(r, shown.text)
		if err == nil && f.Shown != nil {
			f.Shown(who.ID, who.Issuer, shown.text, who.Expires)
		}
		return who, err
	}
	c := challenge{}
	if f.oauth != nil {
		c = f.oauth.challenge(r.URL.EscapedPath(), "invalid_token", err.Error(), nil)
	}
	return Caller{}, &Refusal{
		Status: http.StatusUnauthorized, Code: "invalid_api_key", Challenge: c.String(), Err: err,
		Message: "This gateway needs an API key: send it as \"Authorization: Bearer …\". What came was: " + err.Error() + ".",
	}
}

var errNothing = errors.New("no API key")

// keys returns the file of keys; nil for none. One that was awaited stays one though
// it goes away again, as one that was there from the start does.
func (f *Authenticator) keys() *apikey.File {
	file := f.place()
	if file == nil || file == f.file || f.came.Load() {
		return file
	}
	if _, err := file.Keys(); errors.Is(err, fs.ErrNotExist) || errors.Is(err, watchedfile.ErrHung) {
		return nil
	}
	f.came.Store(true) // what is wrong with it, it says when it is asked
	return file
}

// place returns the file of keys, be there one or not; nil where none can be.
func (f *Authenticator) place() *apikey.File {
	if f.file != nil || f.Awaited == "" {
		return f.file
	}
	if f.late.Load() == nil {
		f.late.CompareAndSwap(nil, apikey.Await(f.Awaited))
	}
	return f.late.Load()
}

// byKey finds out whose an API key is.
func (f *Authenticator) byKey(file *apikey.File, shown string) (Caller, error) {
	if shown == "" {
		return Caller{}, errNothing
	}
	if who, ok := f.fixed.recognise(shown); ok {
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
// the list of models, which other APIs have there too, by a header.
func SpeaksMessages(r *http.Request) bool {
	path := r.URL.Path
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/") || path == "/v1/models" && r.Header.Get("Anthropic-Version") != ""
}

// keyHeader is the header in which the clients of a route may have a key, beside
// Authorization: Anthropic's have one of their own.
func keyHeader(r *http.Request) string {
	if SpeaksMessages(r) {
		return "X-Api-Key"
	}
	return "Api-Key"
}
