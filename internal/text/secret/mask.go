package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// shortest is the length, in bytes, from which a secret is looked for in what others
// say: anything shorter could be any word.
const shortest = 8

// A Mask hides secrets in text. The zero value hides none.
type Mask struct{ forms *strings.Replacer }

// NewMask returns a Mask for secrets of 8 bytes or more. It finds them as they are,
// and as JSON, a URL, Go, or base64 spells them.
func NewMask(secrets ...Text) Mask {
	var forms []string
	for _, t := range secrets {
		if s := t.Reveal(); len(s) >= shortest {
			forms = append(forms, spellings(s)...)
		}
	}
	if forms == nil {
		return Mask{}
	}
	// Of two that begin at one place the replacer takes the first: the longer one.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, Hidden)
	}
	return Mask{strings.NewReplacer(pairs...)}
}

// Hide returns text with each secret replaced by [Hidden].
func (m Mask) Hide(text string) string {
	if m.forms == nil {
		return text
	}
	return m.forms.Replace(text)
}

// spellings are the ways in which a program may show a text.
func spellings(text string) []string {
	var plainJSON bytes.Buffer
	encoder := json.NewEncoder(&plainJSON)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always can be
	escaped, _ := json.Marshal(text)
	quoted := strconv.Quote(text)
	whole := []byte(text[:len(text)/3*3]) // how base64 ends depends on what comes after it
	return []string{
		text,
		strings.Trim(plainJSON.String(), "\"\n"), string(escaped[1 : len(escaped)-1]),
		quoted[1 : len(quoted)-1],
		url.QueryEscape(text), url.PathEscape(text), url.UserPassword("", text).String()[1:],
		base64.StdEncoding.EncodeToString(whole), base64.URLEncoding.EncodeToString(whole),
	}
}
