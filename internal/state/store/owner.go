package store

import (
	"slices"
	"strings"
)

// Owner is how an owner stands in a table: a caller by its ID, with a NUL and more behind
// it where that caller's people, or their conversations, are told apart. PostgreSQL takes
// no NUL, so that it is written otherwise; two owners are never written the same.
func Owner(owner string) string { return ownerEscape.Replace(owner) }

var ownerEscape = strings.NewReplacer(`\`, `\\`, "\x00", `\0`)

// OwnerParts returns what [Owner] wrote, cut at its NULs: first the caller.
func OwnerParts(stored string) []string {
	parts, part := []string{}, strings.Builder{}
	for i := 0; i < len(stored); i++ {
		switch {
		case stored[i] == 0: // as it was written before
			parts = append(parts, part.String())
			part.Reset()
			continue
		case stored[i] != '\\' || i+1 == len(stored):
			part.WriteByte(stored[i])
			continue
		case stored[i+1] == '0':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(stored[i+1])
		}
		i++
	}
	return slices.Concat(parts, []string{part.String()})
}
