package policy

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
	"github.com/dragoman-mcp/dragoman/internal/text/hostname"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
	"github.com/dragoman-mcp/dragoman/internal/wire/addresses"
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
		// Where file systems look neither at case nor, as on macOS, at how letters are composed.
		for _, each := range []string{each, norm.NFC.String(each), norm.NFD.String(each)} {
			s.add(strings.ToLower(folded(each)), true, less)
		}
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
		written, _ := cutPort(host, port)
		name, number := cutPort(unescaped(host), port)
		name = lookedUp(name) // which patterns of a part of an address fit
		read := inOneForm(name)
		encoded, then := deviating(read)
		// Readers of URLs leave hosts of other schemes than the special ones as they are, which
		// may be no hosts at all; whoever connects to one looks it up as any other.
		if port != "" {
			written = strings.ToLower(written)
			_, address := addresses.OfHost(written)
			same = same && (written == read || written == encoded || address && strings.HasPrefix(written, "["))
		}
		hosts := []string{then, read, name}
		if !strings.Contains(encoded, "*") { // that of a pattern would be that of other letters
			hosts = append(hosts, encoded)
		}
		for _, host := range hosts {
			host = strings.TrimSuffix(host, ".") + number
			s.add(scheme+"://"+user+host+clean, same, i > 0)
			if user != "" {
				s.add(scheme+"://"+host+clean, false, true)
			}
		}
	}
}

// before is the profile of readers of IDNA2003, such as Python's, who take some letters for
// others, with which it may be another host to those of today (Unicode Technical Standard 46,
// section 4.1.2, Deviations).
var before = idna.New(idna.MapForLookup(), idna.StrictDomainName(false), idna.ValidateLabels(false), idna.Transitional(true))

// lookedUp returns a host as it is looked up; what names none as far as it can be read.
func lookedUp(host string) string {
	name, _ := hostname.Lookup.ToUnicode(host)
	if name == "" {
		name = strings.ToLower(host)
	}
	return name
}

// inOneForm returns a host that is an address in the one form of that, and a name as it is.
func inOneForm(host string) string {
	addr, ok := addresses.OfHost(host)
	switch {
	case !ok:
		return host
	case addr.Is4():
		return addr.String()
	}
	return "[" + addr.String() + "]"
}

// deviating returns a host that is looked up in Punycode, and as readers of IDNA2003 look it
// up. One that is too long is none, and encoding it would take the square of its length.
func deviating(host string) (encoded, then string) {
	if len(host) > hostname.Max {
		return host, host
	}
	encoded, _ = idna.Punycode.ToASCII(host)
	then, _ = before.ToASCII(host) // which alone knows deviations
	then, _ = idna.Punycode.ToUnicode(then)
	return encoded, then
}

// cutPort cuts a host before its port, which is empty where it goes without saying, and has no
// zeros before its number.
func cutPort(host, usual string) (name, port string) {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || strings.HasSuffix(host, "]") {
		return host, ""
	}
	number := host[colon+1:]
	if short := strings.TrimLeft(number, "0"); short != "" && strings.Trim(short, "0123456789") == "" {
		number = short
	}
	if number == usual || number == "" {
		return host[:colon], ""
	}
	return host[:colon], ":" + number
}

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
