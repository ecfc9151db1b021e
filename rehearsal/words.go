package rehearsal

import (
	"strings"
	"unicode"
)

// A term is one thing that texts are compared by: a word, or two characters of Chinese,
// Japanese or Korean. It says where it stands, in bytes.
type term struct {
	text       string
	start, end int
}

func isCJK(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || c == 'ー' || c == '々'
}

// isChinese is true for text with Chinese characters and nothing that only
// Japanese or Korean has.
func isChinese(s string) bool {
	han := false
	for _, c := range s {
		if unicode.In(c, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			return false
		}
		han = han || unicode.Is(unicode.Han, c)
	}
	return han
}

// terms are what a text is compared by, without words that say nothing about the subject.
func terms(s string) (list []term) {
	start, before := -1, rune(0)
	end := func(at int) {
		if text := strings.ToLower(s[max(start, 0):at]); start >= 0 && !stopWords[text] {
			list = append(list, term{singular(text), start, at})
		}
		start = -1
	}
	from := 0 // where the character before stands
	for i, c := range s {
		wide := isCJK(c)
		letter := !wide && (unicode.IsLetter(c) || unicode.IsDigit(c))
		if start >= 0 && !letter {
			end(i)
		}
		if letter && start < 0 {
			start = i
		}
		if wide && isCJK(before) {
			if pair := s[from : i+len(string(c))]; !stopPairs[pair] {
				list = append(list, term{pair, from, from + len(pair)})
			}
		}
		before, from = c, i
	}
	if start >= 0 {
		end(len(s))
	}
	return list
}

// nameTerms are those of an identifier: get_weather, queryEmployeeTree.
func nameTerms(name string) []term {
	var b strings.Builder
	lower := false
	for _, c := range name {
		if unicode.IsUpper(c) && lower {
			b.WriteByte(' ')
		}
		lower = unicode.IsLower(c)
		b.WriteRune(c)
	}
	return terms(b.String())
}

// singular makes most English plurals like their singulars; both sides are treated the
// same.
func singular(w string) string {
	if len(w) > 3 && !strings.HasSuffix(w, "ss") {
		return strings.TrimSuffix(w, "s")
	}
	return w
}

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// stopWords say nothing about which tool is meant, nor about its arguments.
var stopWords = set(`a an the is are was were be do does did has have had of in on at to for from with by and or not no it i me my you your we our
	this that these those there here what which who how when where why can could would should will please tell show give get let want need
	like any some all as into than then so if about s t re m today now right thanks ok yes just also one use tool tools function call named value called`)

// stopPhrases are the same for Chinese, longest first; a message is cut at them.
var stopPhrases = []string{"怎么样", "告诉我", "请帮我", "请问", "帮我", "什么", "怎么", "如何", "今天", "明天", "现在", "当前", "查询", "查看", "一下", "多少", "可以", "的", "吗", "呢"}

// stopPairs are the pairs of characters in the phrases.
var stopPairs = func() map[string]bool {
	pairs := map[string]bool{}
	for _, phrase := range stopPhrases {
		runes := []rune(phrase)
		for i := range len(runes) - 1 {
			pairs[string(runes[i:i+2])] = true
		}
	}
	return pairs
}()
