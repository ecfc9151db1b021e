package lint

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

// splitWords takes a name apart: "getUserByID", "get_user", "get-user" and
// "repo/get.user" all begin with "get".
func splitWords(name string) []string {
	var words []string
	runes := []rune(name)
	start := 0
	flush := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush(i)
			start = i + 1
		case i > start && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || unicode.IsDigit(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush(i)
		}
	}
	flush(len(runes))
	return words
}

// A wordSet is a set of lower-case words.
type wordSet map[string]bool

func words(text string) wordSet {
	set := wordSet{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// The verbs that tool names use, by what they do. A word that many servers use
// for both reading and writing ("sync", "run", "open") is among neither.
var (
	readVerbs = words(`
		analyze analyse browse calculate check compare compute count describe detect diff explain fetch find get
		inspect introspect list locate lookup look measure peek poll preview query read resolve retrieve scan scrape
		search show stat stats summarize tail validate verify view watch estimate geocode crawl recall map discover
		suggest recommend predict evaluate parse decode encode format convert translate extract render plan tree ping
		echo help status info export download test trace monitor classify take screenshot snapshot capture tokenize
		autocomplete grep match select wait audit research ask explore
		collect filter rank receive review aggregate diagnose recognize recognise`)
	destroyVerbs = words(`
		delete destroy drop erase purge remove wipe truncate uninstall unlink clear overwrite kill terminate revoke
		rm prune reset trash discard rmdir`)
	writeVerbs = words(`
		activate deactivate initiate define repair relate unset autofix zip unzip gzip new add append apply approve archive assign attach ban block book buy cancel change close commit configure copy
		create deploy disable disconnect dispatch draft duplicate edit email enable execute exec fork grant import
		insert install invite invoke join kick leave link lock log merge modify move mute order patch pause pay pin
		post publish push put register reject release reload rename reopen replace reply reserve reset restart
		restore resume retry revert rotate save schedule scale send set share sign submit subscribe sync tag toggle
		transfer trigger unarchive unassign unban unblock unlink unlock unpin unpublish unsubscribe unshare update
		upgrade upload upsert vote write make generate build start stop run open login logout upload mark react
		follow unfollow connect navigate click type press fill drag hover resize store record remember select
		switch use setup init initialize provision attach detach emulate handle draw play request complete
		authenticate authorize begin end finish process perform call launch compress decompress mount unmount migrate
		seed focus expand collapse scroll upload print learn learned simulate solve sample reason think sequential
		ask answer chat notify report translate transform cleanup clean crop rotate swap sort split combine concat
		refresh rebuild reindex index recreate regenerate manage control pull clone checkout forward bookmark
		rollout port route label annotate evict cordon drain taint proxy tile bind unbind reorder rearrange
		embed ingest crawl lint fix optimize batch bulk interact accept decline dismiss acknowledge ack star unstar
		watch unwatch track untrack flag snooze defer escalate simulate convert accept allow deny permit boot design synthesize synthesise
		allocate confirm swipe tap`)
)

// mutates returns the word that shows that the tool changes something: its first
// verb, where that is one of writing or destroying alone. A name that ends with a verb of
// getting begins with what is got: "deploy_plan_get".
func (t *Tool) mutates() (verb string, destroys bool) {
	if n := len(t.words); n > 0 && gets[t.words[n-1]] && !slices.Contains(t.words, "and") {
		return "", false
	}
	for _, w := range t.words {
		read, write, destroy := readVerbs[w], writeVerbs[w], destroyVerbs[w]
		switch {
		case destroy:
			return w, true
		case read:
			return "", false // "list_deleted_files", "search_updates"
		case write && plainlyWrites[w]:
			return w, false
		case write:
			return "", false
		}
	}
	return "", false
}

// plainlyWrites are the verbs that nobody uses for a tool that only reads.
var plainlyWrites = words(`
	add append archive assign ban cancel commit create deploy edit grant insert install invite merge modify move
	patch post publish push put rename replace restore revert rotate save send set submit transfer unassign update
	upload upsert write pay buy book approve reject`)

// sends are verbs whose effect doubles when they are done twice.
var sends = words(`append buy create insert invite order pay post send email reply submit`)

// retrieves are verbs that all mean to get something.
var retrieves = words(`find get list lookup query read retrieve search fetch show view browse`)

// gets are those of them that are no nouns, too.
var gets = words(`get retrieve fetch`)

// lists are verbs of tools that return many things.
var lists = words(`list search browse query`)

// hasVerb reports whether a name says what its tool does.
func hasVerb(name []string) bool {
	return slices.ContainsFunc(name, func(w string) bool {
		return isVerb(w) || strings.HasPrefix(w, "re") && isVerb(w[2:]) || strings.HasPrefix(w, "un") && isVerb(w[2:])
	})
}

func isVerb(w string) bool { return readVerbs[w] || writeVerbs[w] || destroyVerbs[w] }

// prose is a description taken apart.
type prose struct {
	lower string
	words []string
	first []string // words of the first sentence
	latin bool     // written in Latin letters; rules about English words hold
}

var (
	wordPattern = pattern.Of(`[\p{L}\p{N}]+(?:['’][\p{L}]+)?`)
	sentenceEnd = pattern.Of(`[.!?:;](\s|$)|\n|[。！？]`)
	// proseHeading is a first line that says what the next ones are: a tag, or a heading of Markdown.
	proseHeading = pattern.Of(`^(<[\w -]+>|#+ [^\n]*|\*\*[^*\n]+\*\*:?)\s*\n\s*`)
)

func readProse(text string) prose {
	p := prose{lower: strings.ToLower(text)}
	p.words = wordPattern.FindAllString(p.lower, -1)
	first := proseHeading.ReplaceAllString(strings.TrimSpace(p.lower), "")
	if i := sentenceEnd.FindStringIndex(first); i != nil {
		first = first[:i[0]]
	}
	p.first = wordPattern.FindAllString(first, -1)
	latin, letters := 0, 0
	for _, r := range text {
		if unicode.IsLetter(r) {
			letters++
			if r < 0x250 {
				latin++
			}
		}
	}
	p.latin = latin*4 >= letters*3
	return p
}

// has reports whether the text has one of the given words, in any of their
// English forms.
func (p prose) has(set wordSet) bool {
	return slices.ContainsFunc(p.words, func(w string) bool { return stemIn(w, set) })
}

// stemIn reports whether a word, or what it is a form of, is in a set:
// "deletes", "deleting", "deleted", "tries", "copied", "planning".
func stemIn(w string, set wordSet) bool {
	if again, ok := strings.CutPrefix(w, "re"); set[w] || ok && len(again) > 3 && stemIn(again, set) {
		return true
	}
	for _, end := range []struct{ suffix, instead string }{
		{"s", ""}, {"es", ""}, {"es", "e"}, {"ies", "y"}, {"ed", ""}, {"ed", "e"}, {"d", ""}, {"ied", "y"},
		{"ing", ""}, {"ing", "e"}, {"ion", "e"}, {"ion", ""}, {"ment", ""}, {"ation", "e"}, {"al", "e"}, {"er", ""}, {"er", "e"},
	} {
		stem, ok := strings.CutSuffix(w, end.suffix)
		if !ok || len(stem) < 2 {
			continue
		}
		if set[stem+end.instead] {
			return true
		}
		if n := len(stem); end.instead == "" && n > 2 && stem[n-1] == stem[n-2] && set[stem[:n-1]] {
			return true // "planning", "dropped"
		}
	}
	return false
}

// tokens estimates how many tokens a model reads: four bytes of English or JSON
// make about one, and so do about one and a half characters of Chinese, Japanese
// or Korean. It is an estimate: tokenisers differ among themselves, and the
// limits here are round numbers.
func tokens(text []byte) int {
	wide, narrow := 0, 0
	for _, r := range string(text) {
		if r >= 0x2e80 {
			wide++
		} else if r < 0x80 {
			narrow++
		} else {
			narrow += 2
		}
	}
	return narrow/4 + wide*2/3
}

// quoteList names things for people, and not too many of them.
func quoteList(names []string) string {
	const most = 5
	shown := names
	if len(names) > most {
		shown = names[:most]
	}
	quoted := make([]string, len(shown))
	for i, n := range shown {
		quoted[i] = quote(n)
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += " and " + count(more, "other")
	}
	return text
}

// quote returns a server's text for a message: on one line, not too long, and
// with nothing in it that cannot be seen.
func quote(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return `"` + visible(text) + `"`
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// sortBy sorts by a key, keeping the order of equals.
func sortBy[T any, K cmp.Ordered](list []T, key func(T) K) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
