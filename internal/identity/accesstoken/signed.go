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
	header := signed.Signatures[0].Protected
	kind, _ := header.ExtraHeaders[jose.HeaderType].(string)
	if !tokenTypes[strings.ToLower(kind)] {
		return nil, &Invalid{"is no access token: its type is another one"}
	}
	c, bad := readClaims(signed.UnsafePayloadWithoutVerification())
	if bad != nil {
		return nil, bad
	}
	candidates, err := from.keys.find(ctx, header.KeyID, header.Algorithm, c.issued)
	if err != nil {
		if failed, ok := err.(*Unavailable); ok {
			failed.Issuer = from.Name
		}
		return nil, err
	}
	for _, key := range candidates {
		if _, err := signed.Verify(key.Key); err == nil {
			return c.token(from)
		}
	}
	return nil, &Invalid{"was not signed by its issuer"}
}

// token judges claims that were proved to be the issuer's.
func (c *claims) token(from *issuer) (*Token, error) {
	now := time.Now()
	switch {
	case c.issuer != from.Name:
		return nil, &Invalid{"is of another issuer"}
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
