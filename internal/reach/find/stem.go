package find

import "strings"

// stem takes the endings off an English word that say nothing of what it means, so
// that "scheduling", "scheduled" and "schedule" are one. It goes less far than
// Porter's stemmer ("An algorithm for suffix stripping", 1980), whose rules for short
// words it has: words in names of tools are few, and two that are taken for one cost
// more than two that are not. What it returns need not be a word. Words of other
// languages, and those with digits, stay as they are.
func stem(w string) string {
	if len(w) < 4 || whole[w] || strings.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
		return w
	}
	if s, ok := strings.CutSuffix(w, "ied"); ok && len(s) > 1 {
		w = s + "y"
	} else if s, ok := participle(w); ok {
		if w = undoubled(s); w == s {
			w = short(s)
		}
	}
	for _, noun := range []struct{ from, to string }{{"ization", "iz"}, {"isation", "iz"}, {"ation", "at"}, {"ution", "ut"}, {"etion", "et"}, {"ction", "ct"}, {"ition", "it"}} {
		if s, ok := strings.CutSuffix(w, noun.from); ok && len(s) > 1 {
			w = s + noun.to
			break
		}
	}
	if s, ok := strings.CutSuffix(w, "ment"); ok && len(s) > 3 {
		w = s
	}
	if len(w) > 4 && w[len(w)-1] == 'e' && w[len(w)-2] != 'e' {
		w = w[:len(w)-1]
	}
	if s, ok := strings.CutSuffix(w, "is"); ok && len(s) > 4 {
		w = s + "iz" // organise
	}
	return undoubled(w)
}

// whole are words that only look as if they had an ending, or mean something else
// with it.
var whole = map[string]bool{"meeting": true, "setting": true, "building": true, "during": true, "morning": true, "evening": true, "nothing": true, "something": true, "everything": true, "anything": true, "billing": true, "booking": true, "shared": true, "embed": true, "station": true, "nation": true, "ration": true}

// participle takes -ing or -ed off where a word is left that can stand alone.
func participle(w string) (string, bool) {
	for _, ending := range []string{"ing", "ed"} {
		s, ok := strings.CutSuffix(w, ending)
		if ok && len(s) > 2 && strings.ContainsAny(s, "aeiouy") && !(ending == "ed" && s[len(s)-1] == 'e') {
			return s, true
		}
	}
	return w, false
}

// undoubled makes two equal consonants at the end of a word one.
func undoubled(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !vowel(w[n-1]) {
		return w[:n-1]
	}
	return w
}

// short gives a short word its e again: "mak" of "making", but not "box" of "boxed".
func short(w string) string {
	if len(w) == 3 && !vowel(w[0]) && vowel(w[1]) && !vowel(w[2]) && !strings.Contains("wxy", w[2:]) {
		return w + "e"
	}
	return w
}

func vowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
