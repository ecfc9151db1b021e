package dialect

import "testing"

// jsonString is what stands between the quotes of a JSON string.
var jsonString = func() language {
	l, _ := languageOf(`^(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*$`)
	return l
}()

// keepsToJSON reports whether a text that a pattern matches can always stand
// between the quotes of a JSON string. How often something repeats does not
// matter: jsonString is a repetition itself.
func keepsToJSON(p string) bool {
	budget := 50_000_000
	l, ok := languageOf(repetition.ReplaceAllString(p, "*"))
	return ok && l.within(jsonString, &budget)
}

// TestWithin compares languages.
func TestWithin(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{`^a$`, `^[a-c]$`, true},
		{`^[a-c]$`, `^a$`, false},
		{`^a{3}$`, `^a+$`, true},
		{`^a+$`, `^a{1,9}$`, false},
		{`^(ab)*$`, `^[ab]*$`, true},
		{`^(a|b)*a(a|b)$`, `^[ab]{2,}$`, true},
		{`^$`, `^a*$`, true},
		{`^(?i)k$`, `^[kK\x{212A}]$`, true},
		{`^(?i)k$`, `^[kK]$`, false},
		{`^.$`, `^[\s\S]$`, true},
		{`^[\s\S]$`, `^.$`, false},
		{`^a\b$`, `^a$`, false}, // nobody knows
		{`a`, `^[\s\S]*$`, true},
		{`^[0-9]{4}-[0-9]{2}$`, `^[0-9]{4}-`, true},
		{`^[0-9]{4}-`, `^[0-9]{4}-[0-9]{2}$`, false},
	} {
		budget := 100_000
		a, known := languageOf(tc.a)
		b, ok := languageOf(tc.b)
		if got := known && ok && a.within(b, &budget); got != tc.want {
			t.Errorf("%s in %s: %v", tc.a, tc.b, got)
		}
	}
	a, _ := languageOf(`^(a|b)*a(a|b){40}$`)
	if budget := 10_000; a.within(a, &budget) || budget > 0 {
		t.Error("a language with a trillion states was compared")
	}
}
