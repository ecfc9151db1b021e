package dialect

import (
	"strings"
	"unicode"
)

// spelledAlike reports whether two names are the same words, written in another
// way: dryRun, dry_run, "DRY RUN ".
func spelledAlike(a, b string) bool {
	x, y := foldName(a), foldName(b)
	return x == y && x != "" && sigil(a) == sigil(b)
}

// oneMistake reports whether one mistake may have made one name of another: one
// character, or a sign in front, such as in _id and id.
func oneMistake(a, b string) bool {
	if sigil(a) != sigil(b) {
		return foldName(a) == foldName(b) && foldName(a) != ""
	}
	return oneTypo(a, b)
}

// foldName is a name without what spellings of the same words differ in.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// sigil is the sign in front of a name that makes another name of it: _id and
// $id are not id.
func sigil(name string) string {
	return name[:len(name)-len(strings.TrimLeft(name, "_$@#"))]
}

// oneTypo reports whether two names of some length differ in one character that
// is missing, one too many or another, or in two that changed places.
func oneTypo(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) < len(y) {
		x, y = y, x
	}
	if len(y) < 4 || len(x)-len(y) > 1 {
		return false
	}
	i := 0
	for i < len(y) && x[i] == y[i] {
		i++
	}
	rest := func(p, q int) bool { return string(x[i+p:]) == string(y[i+q:]) }
	switch {
	case len(x) > len(y):
		return rest(1, 0)
	case i == len(x):
		return false
	}
	return rest(1, 1) || i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && rest(2, 2)
}
