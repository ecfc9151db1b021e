package rehearsal

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// word is a piece of a message: a run of letters and digits, or of characters
// of one CJK script family.
type word struct {
	text       string
	start, end int // bytes in the message
	cjk        bool
	spaced     bool // white space or a mark of punctuation stands before it
}

// words splits a text. Punctuation inside a path, a number or an address ends
// a word as any other does; fill looks at the text itself for those.
func words(s string) []word {
	var list []word
	open, spaced := false, true
	for i, c := range s {
		letter := unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)
		if !letter {
			open, spaced = false, true
			continue
		}
		wide := isCJK(c)
		if n := len(list); open && list[n-1].cjk == wide {
			list[n-1].end = i + len(string(c))
			list[n-1].text = s[list[n-1].start:list[n-1].end]
			continue
		}
		list = append(list, word{s[i : i+len(string(c))], i, i + len(string(c)), wide, spaced})
		open, spaced = true, false
	}
	return list
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

// term is one thing that is compared: a stemmed word, or two characters.
// Covered are the bytes of the message it stands for.
type term struct {
	text       string
	start, end int
}

// terms are what a text is compared by. Words that say nothing about the
// subject are left out, and Chinese, Japanese and Korean words for what tools
// often do are joined by their English names.
func terms(s string) []term {
	var list []term
	for _, w := range words(s) {
		if !w.cjk {
			text := stem(w.text)
			if !stopWords[text] && !stopWords[strings.ToLower(w.text)] {
				list = append(list, term{text, w.start, w.end})
			}
			for other := range strings.FieldsSeq(synonyms[text]) {
				list = append(list, term{stem(other), w.start, w.end})
			}
			continue
		}
		list = append(list, translated(w)...)
		for _, part := range content(w) {
			list = append(list, pairs(part)...)
		}
	}
	if at := plusSign.FindStringIndex(s); at != nil {
		list = append(list, term{"sum", at[0], at[0]}, term{"add", at[0], at[0]})
	}
	slices.SortFunc(list, func(a, b term) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return strings.Compare(a.text, b.text)
	})
	return list
}

// translated are the terms of the glossary's words in a CJK word.
func translated(w word) []term {
	var list []term
	for _, foreign := range glossaryWords {
		for at := strings.Index(w.text, foreign); at >= 0; {
			for english := range strings.FieldsSeq(glossary[foreign]) {
				list = append(list, term{stem(english), w.start + at, w.start + at + len(foreign)})
			}
			next := strings.Index(w.text[at+1:], foreign)
			if next < 0 {
				break
			}
			at += 1 + next
		}
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
	return terms(strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(b.String()))
}

// pairs are the two-character pieces of a run of CJK text.
func pairs(w word) []term {
	runes := []rune(w.text)
	if len(runes) == 1 {
		return []term{{w.text, w.start, w.end}}
	}
	var list []term
	at := w.start
	for i := range len(runes) - 1 {
		text := string(runes[i : i+2])
		list = append(list, term{text, at, at + len(text)})
		at += len(string(runes[i]))
	}
	return list
}

// content cuts the stop phrases out of a CJK word and strips the particles at
// the ends of what is left.
func content(w word) []word {
	parts := []word{w}
	for _, stop := range stopPhrases {
		var next []word
		for _, p := range parts {
			for {
				at := strings.Index(p.text, stop)
				if at < 0 {
					break
				}
				next = append(next, p.slice(0, at))
				p = p.slice(at+len(stop), len(p.text))
			}
			next = append(next, p)
		}
		parts = next
	}
	var kept []word
	for _, p := range parts {
		left := strings.TrimLeft(p.text, particles)
		p = p.slice(len(p.text)-len(left), len(p.text))
		if p = p.slice(0, len(strings.TrimRight(p.text, particles))); p.text != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

func (w word) slice(from, to int) word {
	return word{w.text[from:to], w.start + from, w.start + to, w.cjk, w.spaced}
}

// stem makes the forms of an English word alike, not pretty: what matters is
// that both sides are treated the same.
func stem(w string) string {
	w = strings.ToLower(w)
	if len(w) < 4 || w[0] > 'z' {
		return w
	}
	for _, rule := range []struct{ end, to string }{
		{"ies", "y"}, {"sses", "ss"}, {"ches", "ch"}, {"shes", "sh"}, {"xes", "x"}, {"ss", "ss"}, {"us", "us"}, {"is", "is"}, {"s", ""},
	} {
		if base, found := strings.CutSuffix(w, rule.end); found {
			w = base + rule.to
			break
		}
	}
	for _, end := range []string{"ing", "ed"} {
		if base, found := strings.CutSuffix(w, end); found && len(base) >= 3 {
			w = base
			break
		}
	}
	if len(w) > 4 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
		m[stem(w)] = true
	}
	return m
}

// stopWords say nothing about which tool is meant, nor about its arguments.
var stopWords = set(`a an the is are was were be been am do does did done has have had of in on at to for from with by and or not no
	i me my you your yours we us our it its this that these those there here what which who whom whose how when where why can could would
	should will shall may might must please tell show give get got let want need know like any some all as into than then so if about
	s t re m ve ll d e g eg etc ie today now right currently thanks thank ok okay yes very much many out up just also me one
	use used using tool tools function functions call calls called calling named value values given specified such via`)

// stopPhrases are the same for Chinese, Japanese and Korean, longest first.
var stopPhrases = []string{
	"教えてください", "알려주세요", "怎么样", "怎麼樣", "告诉我", "告訴我", "教えて", "ください", "てください", "알려줘", "보여줘",
	"请帮我", "请问", "請問", "帮我", "幫我", "什么", "什麼", "怎么", "怎麼", "如何", "今天", "今日", "明天", "现在", "現在", "当前", "目前",
	"查询", "查看", "获取", "看看", "一下", "一个", "多少", "哪些", "哪里", "可以", "我想", "我要", "想要", "知道", "这个", "那个", "指定", "ですか", "です", "ます", "어때", "오늘",
	"は", "の", "を", "が", "に", "で", "と", "へ",
}

// particles are stripped from the ends of what stands between stop phrases.
const particles = "有的了吗嗎呢吧啊呀是在请請我你您里裡把给給会會要也都很"

// plusSign is a sum in figures.
var plusSign = regexp.MustCompile(`\d\s*[+＋]\s*\d`)

// synonyms are other words for what everyday tools are called, by their stem.
var synonyms = map[string]string{
	"plus": "sum add", "total": "sum", "rain": "weather", "raining": "weather", "sunny": "weather", "hot": "weather", "cold": "weather", "warm": "weather", "forecast": "weather",
	"temperatur": "weather", "eat": "restaurant", "dinner": "restaurant", "lunch": "restaurant", "remov": "delete", "eras": "delete",
	"report": "subordinate", "boss": "employee", "staff": "employee",
}

// glossary holds what people who do not write English call the things that
// tools with English descriptions do. It is a crutch: a language model knows.
var glossary = map[string]string{
	"天气": "weather", "天氣": "weather", "天気": "weather", "날씨": "weather", "气温": "weather temperature", "温度": "temperature", "下雨": "weather", "冷": "weather", "热": "weather",
	"餐厅": "restaurant", "餐廳": "restaurant", "餐馆": "restaurant", "饭店": "restaurant", "レストラン": "restaurant", "식당": "restaurant",
	"文件": "file", "档案": "file", "ファイル": "file", "파일": "file", "目录": "directory", "文件夹": "directory folder",
	"求和": "sum", "总和": "sum", "之和": "sum", "相加": "sum add", "加起来": "sum add", "计算": "calculate", "合計": "sum", "計算": "calculate",
	"员工": "employee", "下属": "employee subordinate", "社員": "employee", "直属": "employee", "组织": "employee organization",
	"记录": "record", "記録": "record", "创建": "create", "新建": "create", "作成": "create", "删除": "delete", "削除": "delete",
	"分析": "analyze", "列出": "list", "读取": "read", "写入": "write", "搜索": "search", "查找": "find search", "検索": "search",
	"时间": "time", "数据": "data", "城市": "city", "新闻": "news", "翻译": "translate", "邮件": "mail email",
}

var glossaryWords = slices.Sorted(maps.Keys(glossary))
