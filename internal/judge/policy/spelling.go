package policy

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// A spelling is another way to write what a request names. Whoever serves the request may
// take both for the same, or read the one as the other.
type spelling struct {
	text string
	// same says that no reader sees more in it: what allows the text that was asked for
	// allows this, while what denies or asks about either holds for both.
	same bool
	// less says that a part was left out which some readers ignore.
	less bool
}

// A speller collects spellings, each once.
type speller struct {
	all []spelling
	of  string
}

func (s *speller) add(text string, same, less bool) {
	if text == s.of {
		return
	}
	if i := slices.IndexFunc(s.all, func(each spelling) bool { return each.text == text }); i >= 0 {
		s.all[i].same, s.all[i].less = s.all[i].same && same, s.all[i].less && less
		return
	}
	s.all = append(s.all, spelling{text, same, less})
}

// spellings returns the other spellings of what a target of a kind is called: a URI for
// what servers offer, and a path for a route.
func spellings(kind, text string) []spelling {
	s := &speller{of: text}
	switch kind {
	case string(dragoman.Resource), string(dragoman.Template), string(dragoman.Skill):
		s.uri(text)
	case string(Route):
		// Servers that do not look at case, or at a slash at the end, are many.
		s.add(trimSlash(text), true, false)
		s.add(strings.ToLower(trimSlash(text)), true, false)
	}
	return s.all
}

// uri adds the spellings of a URI: with letters that are spelled as %41 written out
// (RFC 3986 section 6.2.2.2), as often as somebody may read what was read, and each of
// these in its canonical form. What readers leave out may stand within such a letter.
func (s *speller) uri(text string) {
	for n := 0; ; n++ {
		s.add(text, false, false)
		s.canonical(text)
		read := unescaped(stripped(text))
		if n == maxReadings || read == text {
			return
		}
		text = read
	}
}

// canonical adds what a URI is in the one form of all that mean the same: by RFC 3986
// section 6.2 and, as the readers of browsers and Node.js have them, the special schemes
// of https://url.spec.whatwg.org/#special-scheme.
func (s *speller) canonical(text string) {
	plain := stripped(text)
	scheme, rest, ok := cutScheme(plain)
	switch {
	case scheme == "file":
		s.file(rest)
	case ok:
		s.hierarchical(scheme, rest)
	case strings.HasPrefix(plain, "/"), strings.HasPrefix(plain, `\`):
		s.path("", plain, true, false) // a path, of which many servers make file:///path
	}
	if plain != text {
		s.add(plain, false, false)
	}
}

// file adds the forms of a file: URI: file:///path, without repeated slashes and dots.
func (s *speller) file(rest string) {
	host, path := fileHost(rest)
	if host != "" {
		s.hostless(path) // to some \ is no slash, and so part of a host
	}
	host, path = fileHost(strings.ReplaceAll(rest, `\`, "/"))
	local := host == "" || strings.EqualFold(host, "localhost")
	if !local {
		s.hostless(path)
	}
	for i, each := range []string{path, beforeQuery(path)} {
		if i > 0 && each == path {
			return
		}
		if local {
			s.path("", each, true, i > 0)
			continue
		}
		s.path(strings.ToLower(host), each, true, i > 0)
		s.path("", host+"/"+each, true, i > 0) // for those who cut off file://
	}
}

// fileHost cuts what follows file: behind the host; empty for none.
func fileHost(rest string) (host, path string) {
	if authority, ok := strings.CutPrefix(rest, "//"); ok && !strings.HasPrefix(authority, "/") {
		return cutAuthority(authority)
	}
	return "", rest
}

// hostless adds the path of a file: URI for those who ignore its host, and write out the
// letters behind it afterwards: a slash that is spelled %2f ends no host.
func (s *speller) hostless(path string) {
	for range maxReadings {
		s.path("", path, false, true)
		s.path("", beforeQuery(path), false, true)
		path = unescaped(path)
	}
}

// path adds a path of a host as file: URIs.
func (s *speller) path(host, path string, same, less bool) {
	path = "/" + strings.TrimLeft(strings.ReplaceAll(path, `\`, "/"), "/")
	clean := withoutDots(path, true)
	same = same && !less && clean == path
	uri := "file://" + host + clean
	for _, each := range []string{uri, trimSlash(uri)} {
		s.add(each, same, less)
		s.add(strings.ToLower(folded(each)), true, less) // where file systems do not look at case
		same = true
	}
}

// hierarchical adds the forms of other URIs.
func (s *speller) hierarchical(scheme, rest string) {
	port, special := defaultPorts[scheme]
	if special {
		head := len(beforeQuery(rest))
		slashed := "//" + strings.TrimLeft(strings.ReplaceAll(rest[:head], `\`, "/"), "/") + rest[head:]
		if slashed != rest {
			s.authority(scheme, rest, port) // to some \ is no slash, and so part of a host
		}
		rest = slashed
	}
	s.authority(scheme, rest, port)
}

// authority adds the forms of a URI whose default port is that; empty for none.
func (s *speller) authority(scheme, rest, port string) {
	whole := rest
	rest, _, _ = strings.Cut(rest, "#")
	for i, each := range []string{whole, rest} {
		if i > 0 && each == whole {
			return
		}
		authority, ok := strings.CutPrefix(each, "//")
		if !ok {
			s.add(scheme+":"+each, i == 0, i > 0)
			continue
		}
		host, path := cutAuthority(authority)
		head := beforeQuery(path)
		clean := withoutDots(head, false) + path[len(head):]
		if head == "" {
			clean = "/" + path
		}
		same := i == 0 && (head == "" || clean == path)
		user := ""
		if at := strings.LastIndex(host, "@"); at >= 0 {
			user, host = host[:at+1], host[at+1:]
		}
		host = strings.TrimSuffix(strings.ToLower(host), ":")
		if port != "" {
			name := mapped(unescaped(host))
			same, host = same && name == host, name
			if colon := strings.LastIndexByte(host, ':'); colon >= 0 && strings.TrimLeft(host[colon+1:], "0") == port {
				host = host[:colon]
			}
			host = strings.TrimSuffix(host, ".")
			for _, other := range []string{deviating(host), mapped(spelledOut(host))} {
				s.add(scheme+"://"+user+other+clean, same, i > 0)
			}
		}
		s.add(scheme+"://"+user+host+clean, same, i > 0)
		if user != "" {
			s.add(scheme+"://"+host+clean, false, true)
		}
	}
}

// mapped returns a host in lower case as names are looked up (Unicode Technical Standard 46,
// section 4, Mapping): in the letters that others stand for, and without what is ignored.
func mapped(host string) string {
	if strings.IndexFunc(host, func(r rune) bool { return r >= 0x80 }) < 0 {
		return host
	}
	host = strings.Map(func(r rune) rune {
		switch {
		case r == '\u3002':
			return '.'
		case r == '\u200c', r == '\u200d': // of deviations
		case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, norm.NFKC.String(host))
	return norm.NFKC.String(strings.ToLower(host))
}

// spelledOut returns a host with its labels that are in Punycode (xn--) in the letters that
// they stand for (RFC 5891, section 5.3). Readers look up the one and the other as the same.
func spelledOut(host string) string {
	if !strings.Contains(host, "xn--") {
		return host
	}
	name, port, numbered := strings.Cut(host, ":")
	name, err := idna.Punycode.ToUnicode(name)
	if err != nil || name == "" {
		return host // it names nothing
	}
	if numbered {
		name += ":" + port
	}
	return name
}

// deviating returns a host as readers of IDNA2003, such as Python's, look it up. To those of
// today it may be another one (Unicode Technical Standard 46, section
// 4.1.2, Deviations).
func deviating(host string) string {
	if strings.IndexFunc(host, func(r rune) bool { return r >= 0x80 }) < 0 {
		return host
	}
	return norm.NFKC.String(strings.ToLower(folded(deviations.Replace(host))))
}

var deviations = strings.NewReplacer("\u00df", "ss", "\u200c", "", "\u200d", "")

// defaultPorts are the special schemes with the ports that go without saying.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}

// stripped returns a URI as its readers begin: without what stands around it, and line
// breaks and tabs in it.
func stripped(uri string) string {
	uri = strings.TrimFunc(uri, func(r rune) bool { return r <= ' ' })
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, uri)
}

// cutScheme cuts a URI behind its scheme (RFC 3986 section 3.1), which it returns in lower
// case.
func cutScheme(uri string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(uri, ":")
	if !ok || scheme == "" || strings.ContainsFunc(scheme, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("+-.", r)
	}) {
		return "", uri, false
	}
	return strings.ToLower(scheme), rest, true
}

// cutAuthority cuts what follows // where its path, query or fragment begins.
func cutAuthority(text string) (host, rest string) {
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

func beforeQuery(text string) string {
	if i := strings.IndexAny(text, "?#"); i >= 0 {
		return text[:i]
	}
	return text
}

// withoutDots returns a path without segments that stay where they are and, where once is
// set, without slashes that repeat themselves. What goes up stays: [target.climbs].
func withoutDots(path string, once bool) string {
	if !strings.Contains(path, "/.") && !(once && strings.Contains(path, "//")) {
		return path
	}
	segments := strings.Split(path, "/")
	last := len(segments) - 1
	kept := segments[:0]
	for i, each := range segments {
		switch {
		case each == "." && i == last:
			kept = append(kept, "") // the folder itself, with its slash
		case each == ".", each == "" && once && i > 0 && i < last:
		default:
			kept = append(kept, each)
		}
	}
	return strings.Join(kept, "/")
}

// trimSlash leaves out the slashes at the end of a path, but for its only one.
func trimSlash(text string) string {
	if short := strings.TrimRight(text, "/"); short != "" && !strings.HasSuffix(short, ":") {
		return short
	}
	return text
}

// respelled returns patterns of what is denied or asked about, and those that they are in
// the spellings of what they match: a rule holds for a thing however either is spelled.
func respelled(patterns []string) []string {
	all := slices.Clone(patterns)
	for _, pattern := range patterns {
		kind, name := permission.CutPattern(pattern)
		begin, original := "", name
		if kind != string(Route) {
			label, rest, ok := qualified.Split(name)
			if !ok || kind != "" && kind != string(dragoman.Resource) && kind != string(dragoman.Template) && kind != string(dragoman.Skill) {
				continue
			}
			begin, original = qualified.Name(label, ""), rest
		}
		of := kind
		if kind == "" {
			of = string(dragoman.Resource)
		}
		if kind != "" {
			begin = kind + ":" + begin
		}
		for _, text := range patternSpellings(of, original) {
			if each := begin + text; !slices.Contains(all, each) {
				all = append(all, each)
			}
		}
	}
	return all
}

// patternSpellings returns the other spellings of a pattern, in which ? and * stand for
// anything and begin no query.
func patternSpellings(kind, pattern string) (all []string) {
	const anyOne = "\ue000"
	stars := strings.Count(pattern, "*")
	for _, each := range spellings(kind, strings.ReplaceAll(pattern, "?", anyOne)) {
		if !each.less && strings.Count(each.text, "*") == stars && !strings.Contains(each.text, "?") {
			all = append(all, strings.ReplaceAll(each.text, anyOne, "?"))
		}
	}
	return all
}
