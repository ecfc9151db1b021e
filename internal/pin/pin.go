// Package pin says which definition of a tool was approved.
//
// A pin is a digest of what a server says about one tool. It is taken when
// somebody has looked at the tool, and compared each time the tool is listed: a
// tool whose pin differs is not the tool that was looked at (a "rug pull"). The
// linter and the gateway share this package, so that the file that one writes
// means the same to the other.
package pin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dragoman-mcp/dragoman"
)

// A Digest is a SHA-256 digest.
type Digest [sha256.Size]byte

// Of returns the pin of a tool, as [dragoman.Pin] makes it: of the server's label,
// of the name by which the server knows the tool, and of its entry in tools/list,
// byte for byte.
func Of(server, original string, definition []byte) Digest {
	return dragoman.Pin(server, original, definition)
}

// String returns the digest as hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText is [Digest.String].
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what [Digest.MarshalText] wrote.
func (d *Digest) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("%q is not a digest of %d hexadecimal digits", text, 2*len(d))
	}
	*d = Digest(b)
	return nil
}

// Parts are the members of a definition that [Compare] tells apart. All others
// are "other".
var Parts = []string{"title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta", "execution"}

const other = "other"

// partDigests returns short digests of a definition's parts, independent of the
// order of members and of white space: they tell people what changed, and are
// never what an approval rests on.
func partDigests(definition []byte) map[string]string {
	var members map[string]json.RawMessage
	if json.Unmarshal(definition, &members) != nil {
		return map[string]string{other: short(definition)}
	}
	parts := map[string]string{}
	rest := map[string]json.RawMessage{}
	for name, value := range members {
		switch {
		case slices.Contains(Parts, name):
			parts[name] = short(canonical(value))
		case name != "name":
			rest[name] = canonical(value)
		}
	}
	if len(rest) > 0 {
		b, _ := json.Marshal(rest) // of canonical values
		parts[other] = short(b)
	}
	return parts
}

// canonical returns JSON with sorted members and without white space; numbers
// keep their spelling.
func canonical(raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return raw
	}
	b, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return b
}

func short(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
