// Package coding reads what a Content-Encoding says of a body (RFC 9110, section 8.4).
package coding

import "strings"

// Compresses reports whether a Content-Encoding names a way to compress. Some servers say
// there what is none of a body that is as it is, such as "none", so that no proxy before
// them compresses it, or "utf-8".
func Compresses(encoding string) bool {
	for coding := range strings.SplitSeq(strings.ToLower(encoding), ",") {
		switch strings.TrimSpace(coding) {
		case "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz":
			return true
		}
	}
	return false
}
