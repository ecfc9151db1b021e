package accesstoken

import (
	"context"
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// algorithms are those with public keys. A token never chooses: "none" and the
// shared secrets of HS256 are not among them.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// tokenTypes are what the header typ of an access token may say (RFC 9068 section
// 2.1, and JWT, which most issuers still write). Other kinds of tokens that an issuer
// signs with the same key are no access tokens.
var tokenTypes = map[string]bool{"": true, "jwt": true, "at+jwt": true, "application/at+jwt": true}

// claimedIssuer is the issuer that a token names, unproved: it only chooses whose
// keys are to prove it. It is false for a token that is no signed JWT.
func claimedIssuer(token string) (string, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || rawjson.Check(payload) != nil {
		return "", false
	}
	claims, err := rawjson.ParseObject(payload)
	if err != nil {
		return "", false
	}
	return rawjson.String(claims.Get("iss"))
}

// verifySigned verifies a JWT of an issuer, but for its audience.
func verifySigned(ctx context.Context, from *issuer, token string) (*Token, error) {
	signed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil || len(signed.Signatures) != 1 {
		return nil, &Invalid{"is not signed in a way that is accepted here"}
	}
	if bad := checkHeader(token); bad != nil {
		return nil, bad
	}
	header := signed.Signatures[0].Protected
	c, bad := readClaims(signed.UnsafePayloadWithoutVerification())
	if bad != nil {
		return nil, bad
	}
	// What would be no good however it was signed costs its issuer nothing, and is no
	// reason to tell anybody to come again.
	good, err := c.token(from)
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		candidates, err := from.keys.find(ctx, header.KeyID, header.Algorithm, c.issued)
		if err != nil {
			if failed, ok := err.(*Unavailable); ok {
				failed.Issuer = from.Name
			}
			return nil, err
		}
		for _, key := range candidates {
			if _, err := signed.Verify(key.Key); err == nil {
				return good, nil
			}
		}
		// Some issuers put another key in the place of one by the same id, or by none.
		if again || !from.keys.renewed(ctx, c.issued) {
			return nil, &Invalid{"was not signed by its issuer"}
		}
	}
}

// checkHeader judges the header of a signed token, but for its algorithm and key.
func checkHeader(token string) *Invalid {
	encoded, _, _ := strings.Cut(token, ".")
	document, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || rawjson.Check(document) != nil {
		return &Invalid{"has a header that cannot be read"}
	}
	header, err := rawjson.ParseObject(document)
	if err != nil {
		return &Invalid{"has a header that cannot be read"}
	}
	kind := ""
	if raw := header.Get("typ"); raw != nil {
		var ok bool
		if kind, ok = rawjson.String(raw); !ok || kind == "" {
			return &Invalid{"has a type that is no text"}
		}
	}
	switch {
	case !tokenTypes[strings.ToLower(kind)]:
		return &Invalid{"is no access token: its type is another one"}
	case header.Get("zip") != nil, header.Get("enc") != nil:
		return &Invalid{"is of a form that is not signed text"} // RFC 7516: they are for what is encrypted
	}
	return nil
}

// token judges claims, as if they were proved to be the issuer's.
func (c *claims) token(from *issuer) (*Token, error) {
	now := time.Now()
	switch {
	case c.issuer != from.Name:
		return nil, &Invalid{"is of another issuer"}
	case c.otherKind:
		return nil, &Invalid{"is no access token"}
	case c.expires.IsZero():
		return nil, &Invalid{"never expires"}
	case !now.Before(c.expires.Add(Leeway)):
		return nil, &Invalid{"has expired"}
	case c.notBefore.After(now.Add(Leeway)), c.issued.After(now.Add(Leeway)):
		return nil, &Invalid{"is not good yet"}
	case c.bound:
		return nil, &Invalid{"is bound to a key, whose proof is not asked for here"}
	case c.subject == "":
		return nil, &Invalid{"names nobody"}
	}
	return &Token{
		Issuer: c.issuer, Subject: c.subject, Client: c.client, Username: c.username,
		Audience: c.audience, Scopes: c.scopes, Expires: c.expires,
	}, nil
}
