// Package hostname reads names of hosts as those do who look them up.
package hostname

import (
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Lookup is the profile by which readers look up a host: in the letters that others, and
// Punycode, stand for, and without what is ignored (Unicode Technical Standard 46, section 4).
var Lookup = idna.New(idna.MapForLookup(), idna.StrictDomainName(false), idna.ValidateLabels(false))

// Max is how long a host can be whose name has 255 bytes (RFC 1035, section 2.3.4). One that is
// longer is none, and encoding it would take the square of its length.
const Max = 255 * utf8.UTFMax
