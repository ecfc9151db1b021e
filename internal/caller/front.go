package caller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/apikey"
)

// A Front recognises callers. Make it with [New]; it is safe for concurrent use.
type Front struct {
	fixed fixed
	file  *apikey.File
}

// New returns a Front for a configuration. keys are API keys beside those of the
// configuration; empty ones are none. A file of keys that cannot be used is an
// error now, and refuses its callers later.
func New(c Config, keys ...string) (*Front, error) {
	f := &Front{fixed: newFixed(append(keys[:len(keys):len(keys)], c.APIKeys...))}
	if c.KeysFile != "" {
		var err error
		if f.file, err = apikey.Open(c.KeysFile); err != nil {
			return nil, fmt.Errorf("auth.keys_file: %w", err)
		}
	}
	return f, nil
}

// Required reports whether callers have to say who they are. Otherwise everybody is
// [Local]. A file of keys asks everybody, though it be empty.
func (f *Front) Required() bool { return len(f.fixed) > 0 || f.file != nil }

// Recognise returns who makes a request, by its Authorization header ("Bearer", as
// OpenAI and MCP clients send it) or its api-key header (as Azure's clients do). The
// error is a [*Refusal].
func (f *Front) Recognise(r *http.Request) (Caller, error) {
	if !f.Required() {
		return Local, nil
	}
	shown, refusal := credential(r)
	if refusal != nil {
		return Caller{}, refusal
	}
	who, err := f.whose(shown)
	switch {
	case err == nil:
		return who, nil
	case errors.Is(err, errKeysFile):
		return Caller{}, unavailable(err, time.Second)
	}
	return Caller{}, &Refusal{
		Status: http.StatusUnauthorized, Code: "invalid_api_key", Challenge: challenge{}.String(), Err: err,
		Message: "This gateway needs an API key: send it as \"Authorization: Bearer …\". What came was: " + err.Error() + ".",
	}
}

var errNothing = errors.New("no API key")

// whose finds out whose a credential is.
func (f *Front) whose(shown string) (Caller, error) {
	if shown == "" {
		return Caller{}, errNothing
	}
	if who, ok := f.fixed.recognise(shown); ok {
		return who, nil
	}
	if f.file != nil && apikey.Is(shown) {
		return filed(f.file, shown)
	}
	return Caller{}, errUnknownKey
}

// credential returns what a request shows; empty for nothing. Two of one kind would
// leave it to chance which one counts.
func credential(r *http.Request) (string, *Refusal) {
	bearers, keys := r.Header.Values("Authorization"), r.Header.Values("Api-Key")
	if len(bearers) > 1 || len(keys) > 1 {
		return "", &Refusal{
			Status: http.StatusBadRequest, Code: "ambiguous_credentials",
			Challenge: challenge{}.with("error", "invalid_request").String(),
			Message:   "The request carries more than one Authorization or Api-Key header: send one.",
		}
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token), nil
	}
	return r.Header.Get("Api-Key"), nil
}
