package accesstoken

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// claims are what a token says (RFC 7519 section 4.1, RFC 9068), or an issuer about
// it (RFC 7662 section 2.2).
type claims struct {
	issuer, subject, client, username string
	audience, scopes                  []string
	expires, notBefore, issued        time.Time // zero where they are missing
	bound                             bool      // to a key of its client (RFC 7800)

	active    bool // in an introspection
	tokenType string
	otherKind bool // it is an ID token, a refresh token or the like
}

// maxName is the longest subject and the like, in bytes. RFC 7519 has no limit,
// OpenID Connect one of 255.
const maxName = 255

// A claimReader takes claims apart. What is there and of the wrong type is as bad as
// a signature that is.
type claimReader struct {
	*rawjson.Object
	bad *Invalid
}

func readClaims(document []byte) (*claims, *Invalid) {
	if rawjson.Check(document) != nil {
		return nil, &Invalid{"holds no claims"}
	}
	object, err := rawjson.ParseObject(document)
	if err != nil {
		return nil, &Invalid{"holds no claims"}
	}
	r := &claimReader{Object: object}
	c := &claims{
		issuer: r.text("iss"), subject: r.name("sub"), client: r.name("client_id"),
		audience: r.list("aud", false), scopes: append(r.list("scope", true), r.list("scp", true)...),
		expires: r.date("exp"), notBefore: r.date("nbf"), issued: r.date("iat"),
		bound:     r.has("cnf"),
		active:    string(r.Get("active")) == "true",
		tokenType: r.text("token_type"), otherKind: r.otherKind(),
	}
	if c.client == "" {
		c.client = r.name("azp")
	}
	// These are for people. Whatever is wrong with them says nothing of the token.
	for _, name := range []string{"preferred_username", "username", "email"} {
		if text, ok := rawjson.String(r.Get(name)); ok && c.username == "" && plain(text) {
			c.username = text
		}
	}
	return c, r.bad
}

// otherKind reports whether the claims are of a token that is no access token. Issuers
// sign all of theirs with the same key, and many write JWT in the header of each; the
// audience of an ID token, the client's own id, may be what is asked for here. token_use
// is Cognito's (access, id) and Hydra's (access_token, refresh_token), typ Keycloak's
// (Bearer, ID, Refresh, Offline, Logout); at_hash is of an ID token (OpenID Connect Core,
// section 3.1.3.6), events of a logout token (Back-Channel Logout, section 2.4).
func (r *claimReader) otherKind() bool {
	switch r.text("token_use") {
	case "", "access", "access_token":
	default:
		return true
	}
	switch kind, _ := rawjson.String(r.Get("typ")); kind {
	case "ID", "Refresh", "Offline", "Logout":
		return true
	}
	return r.has("at_hash") || r.has("events")
}

func (r *claimReader) has(name string) bool {
	raw := r.Get(name)
	return raw != nil && !rawjson.IsNull(raw)
}

func (r *claimReader) wrong(name string) {
	r.bad = &Invalid{"has a claim " + name + " that makes no sense"}
}

func (r *claimReader) text(name string) string {
	if !r.has(name) {
		return ""
	}
	text, ok := rawjson.String(r.Get(name))
	if !ok {
		r.wrong(name)
	}
	return text
}

// plain reports whether a text can be shown, logged and used as a key.
func plain(text string) bool {
	return len(text) <= maxName && !strings.ContainsFunc(text, unicode.IsControl)
}

// name is a text that becomes a part of who somebody is.
func (r *claimReader) name(name string) string {
	text := r.text(name)
	if !plain(text) {
		r.wrong(name)
	}
	return text
}

// list is a text or a list of texts; words says that a text is many.
func (r *claimReader) list(name string, words bool) []string {
	if !r.has(name) {
		return nil
	}
	raw := r.Get(name)
	text, one := rawjson.String(raw)
	switch {
	case one && words:
		return strings.Fields(text)
	case one:
		return []string{text}
	}
	var list []string
	elements, err := rawjson.Elements(raw)
	if err != nil {
		r.wrong(name)
	}
	for _, e := range elements {
		text, ok := rawjson.String(e)
		if !ok {
			r.wrong(name)
		}
		list = append(list, text)
	}
	return list
}

// lastDate is the end of the year 9999, in seconds.
const lastDate = 253402300799

// date is a NumericDate: seconds since 1970, maybe with a fraction (RFC 7519 section
// 2), which counts for nothing. Issuers that have no time to name write 0.
func (r *claimReader) date(name string) time.Time {
	if !r.has(name) {
		return time.Time{}
	}
	seconds, err := strconv.ParseFloat(string(r.Get(name)), 64)
	if err != nil || seconds < 0 || seconds > lastDate {
		r.wrong(name)
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}
