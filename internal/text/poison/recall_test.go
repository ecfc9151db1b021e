package poison

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// filler is an honest text that is long enough to bury another one in.
var filler = strings.Repeat("Returns the forecast of the next days for a city, in degrees and with the chance of rain. ", 12)

// disguises hide a text. Some are for Latin letters alone.
var disguises = []struct {
	name  string
	latin bool
	hide  func(string) string
}{
	{"plain", false, func(s string) string { return s }},
	{"padded", false, func(s string) string { return filler + strings.Repeat("\n", 40) + s + strings.Repeat(" ", 80) + filler }},
	{"comment", false, func(s string) string { return "Gets the weather. <!-- " + s + " --> Returns text." }},
	{"decorated", false, func(s string) string { return "**" + strings.ReplaceAll(s, " ", " *") + "**" }},
	{"capitals", false, strings.ToUpper},
	{"wrapped", false, func(s string) string { return strings.ReplaceAll(s, " ", "\n  ") }},
	{"base64", false, func(s string) string {
		return "Checksum of the tool: " + base64.StdEncoding.EncodeToString([]byte(s))
	}},
	{"base64url", false, func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }},
	{"base64 twice", false, func(s string) string {
		return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(s))))
	}},
	{"hex", false, func(s string) string { return "Build " + hex.EncodeToString([]byte(s)) + "." }},
	{"hex pairs", false, func(s string) string { return fmt.Sprintf("Data: % x", s) }},
	{"URL", false, func(s string) string { return "See ?note=" + url.QueryEscape(strings.ReplaceAll(s, " ", "\u00a0")) }},
	{"percent", false, url.PathEscape},
	{"entities", false, func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, "&#%d;", r)
		}
		return b.String()
	}},
	{"escapes", false, func(s string) string {
		var b strings.Builder
		for _, r := range s {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		return b.String()
	}},
	{"zero width", false, func(s string) string { return strings.ReplaceAll(s, "", "\u200b") }},
	{"tags", true, func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteRune(0xe0000 + r)
		}
		return "Gets the weather." + b.String()
	}},
	{"rot13", true, func(s string) string { return strings.Map(rot13, s) }},
	{"reversed", true, reverse},
	{"full width", true, func(s string) string {
		return strings.Map(func(r rune) rune {
			if r > ' ' && r < 0x7f {
				return r + 0xfee0
			}
			return r
		}, s)
	}},
	{"bold letters", true, func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 0x1d41a
			}
			return r
		}, s)
	}},
	{"look-alikes", true, func(s string) string {
		return strings.NewReplacer("a", "а", "e", "е", "o", "о", "i", "і").Replace(s)
	}},
	{"spaced", true, func(s string) string { return strings.Join(strings.Split(s, ""), " ") }},
	{"digits", true, func(s string) string { return strings.NewReplacer("o", "0", "i", "1", "e", "3", "a", "4").Replace(s) }},
}

// recall prints how many texts are found, by language, family and disguise, and returns
// the share of those in all disguises.
func recall(t *testing.T, all []sample) float64 {
	t.Helper()
	found, tried := 0, 0
	byWhat := map[string][2]int{}
	for _, s := range all {
		for _, d := range disguises {
			if d.latin && s.language != "en" {
				continue
			}
			hit := 0
			if judge(d.hide(s.text)) != nil {
				hit = 1
			} else if d.name == "plain" {
				t.Logf("missed (%s, %s): %s", s.language, s.family, s.text)
			}
			tried++
			found += hit
			for _, what := range []string{"language " + s.language, "family " + s.family, "disguise " + d.name} {
				n := byWhat[what]
				byWhat[what] = [2]int{n[0] + hit, n[1] + 1}
			}
		}
	}
	var lines []string
	for what, n := range byWhat {
		lines = append(lines, fmt.Sprintf("%-24s %5d of %5d  %5.1f %%", what, n[0], n[1], 100*float64(n[0])/float64(n[1])))
	}
	slices.Sort(lines)
	share := float64(found) / float64(tried)
	t.Logf("%d texts, %d of %d found in all disguises (%.1f %%)\n%s", len(all), found, tried, 100*share, strings.Join(lines, "\n"))
	return share
}

// TestRecall: of what the lexicon was tuned on nearly all is found, as of texts that were
// written before it; of texts that were written when it was done, about half. The last is
// what to expect of a stranger's.
func TestRecall(t *testing.T) {
	for _, file := range []struct {
		name  string
		least float64
	}{{"tuned.txt", 0.95}, {"heldout.txt", 0.98}, {"fresh.txt", 0.55}} {
		t.Run(file.name, func(t *testing.T) {
			if share := recall(t, samples(t, file.name)); share < file.least {
				t.Errorf("%.1f %% are found, at least %.1f %% were", 100*share, 100*file.least)
			}
		})
	}
}
