// Package pin says which definition of a tool, or of another thing that models read
// of a server, was approved.
//
// A pin is a digest of what a server says about one tool, prompt or skill, or of its
// instructions. It is taken when somebody has looked at them, and compared each time
// they are listed: a tool whose pin differs is not the tool that was looked at (a "rug
// pull"). The linter and the gateway share this package, so that the file that one
// writes means the same to the other.
//
// # The file
//
// A [Lock] is JSON in UTF-8, for review in pull requests: two spaces of
// indentation, names sorted, a line break at the end, and the same bytes for the
// same pins.
//
//	{
//	  "version": 2,
//	  "servers": {
//	    "notes": {
//	      "tools": {
//	        "get_note": {
//	          "pin": "9f86d081884c7d65…",
//	          "parts": {
//	            "description": "2c26b46b68ffc68f",
//	            "inputSchema": "fcde2b2edba56bf4"
//	          }
//	        }
//	      },
//	      "prompts": {},
//	      "instructions": {
//	        "pin": "5891b5b522d5df08…",
//	        "parts": {
//	          "instructions": "7d865e959b246691"
//	        }
//	      }
//	    }
//	  }
//	}
//
// servers has a member for each server, by its label in the configuration. In it,
// tools, prompts and skills have one for each definition, by the server's own name of
// it, or the URI of a skill, and instructions is the one text. A server that is not
// there was never looked at; a tool that is not there was not there when it was.
// prompts, skills and instructions may be missing: of these the file then says
// nothing. A server without instructions has the pin of the empty text. A file that
// has none of the three has version 1, which is all that earlier programs read.
//
// pin is [Key.Of] in 64 hexadecimal digits, and decides alone. parts are the first 8
// bytes of SHA-256 of the definition's parts (see [Parts]) with members sorted and
// without white space, in 16 digits: they name what changed where the pin differs,
// and are too short to decide anything. Members that are not named here, and other
// versions, are refused: a file that is not understood must not approve anything.
//
// # What changed
//
// [Lock.Compare] says which tools differ from the file, and in which parts.
// [Changes] says how, in words, for whoever has both definitions at hand: the
// gateway, which keeps what was approved, or the linter, which asked twice.
package pin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// A Digest is a SHA-256 digest.
type Digest [sha256.Size]byte

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

// Parts are the members of a definition that [Lock.Compare] tells apart. All others
// are "other".
var Parts = []string{
	"title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta", "execution",
	"arguments", "frontmatter", "resources", "instructions",
}

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
			parts[name] = short(sorted(value))
		case name != "name":
			rest[name] = sorted(value)
		}
	}
	if len(rest) > 0 {
		b, _ := json.Marshal(rest) // of sorted values
		parts[other] = short(b)
	}
	return parts
}

// sorted returns JSON with sorted members and without white space; numbers
// keep their spelling.
func sorted(raw []byte) []byte {
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
