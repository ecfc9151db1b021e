package caller

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Standing returns a caller who was recognised before as it is now, with a mark that is
// another one as soon as what it showed is not what it was: a key that was revoked, changed
// or has expired has none, and ok is false. Access tokens are good until they expire, or what
// they grant is another thing by what is accepted now. It is for what outlasts requests and
// shows no key itself, such as a browser's session.
func (f *Authenticator) Standing(who Caller) (now Caller, mark string, ok bool) {
	accepted := f.now.Load()
	switch {
	case !who.Valid(), f.isRevoked(who.ID):
		return Caller{}, "", false
	case who.Issuer != "":
		from := accepted.oauth.issuer(who.Issuer)
		return who, "", from != nil && from.stands(who)
	case accepted.fixed.has(who.ID):
		return who, "", true
	}
	file := f.file(accepted)
	if !f.Required() || file == nil {
		return Caller{}, "", false
	}
	keys, err := file.Keys()
	if err != nil {
		return Caller{}, "", false
	}
	r, ok := keys[strings.TrimPrefix(who.ID, "key-")]
	if !ok {
		return Caller{}, "", false
	}
	if now, err = f.keyed(r); err != nil {
		return Caller{}, "", false
	}
	document, _ := json.Marshal(r) // it is texts and times
	sum := sha256.Sum256(document)
	return now, hex.EncodeToString(sum[:]), true
}
