package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/text/hostname"
)

// A rule that denies a URI denies each spelling of it that a server may take for the same:
// RFC 3986 section 6.2 for all schemes, and one canonical form for file:.
func TestSpellingsOfDeniedURIs(t *testing.T) {
	p := must(t, Config{Rules: []Rule{
		{Allow: []string{"*"}},
		{Deny: []string{
			"resource:files__file:///srv/secret/*", "resource:files__file:///srv/one.txt", "resource:files__FILE:/srv//%6fther/./*", "resource:files__file:///c:/Users/?dmin/*", "resource:files__file:///srv/Caf\u00e9/*", "resource:files__file:///srv/nai\u0308f/*",
			"resource:files__https://Inner.example/secret/*", "resource:files__notes://Team/Secret/*", "resource:files__git://h/a%2Fb*",
			"resource:files__https://strasse.example/*", "resource:files__https://b\u00fccher.example/*", "resource:files__https://xn--r8jz45g.example:8443/*",
			"resource:files__http://127.0.0.1/*", "resource:files__http://[::1]:81/*", "resource:files__http://0xa000001/*",
			"resource:files__postgres://db:5432/*", "resource:files__postgres://[::1]/*", "resource:files__postgres://[0::7]:099/*",
			"resource:files__redis://127.0.0.1:6379/*", "resource:files__redis://localhost:6379/*", "resource:files__customers://1001/*",
			"resource:files__http://[::ffff:1*", "resource:files__http://0xc0*", "resource:files__postgres://[fd00:0:*",
			"resource:files__https://xn--*:81/*", "resource:files__postgres://xn--*:81/*",
		}},
	}})
	for uri, want := range map[string]Effect{
		"file:///srv/public/a":                     Allow,
		"file:///srv/secretive":                    Allow,
		"file:///srv/secret/a":                     Deny,
		"FILE:///srv/secret/a":                     Deny,
		"file:/srv/secret/a":                       Deny,
		"file:srv/secret/a":                        Deny,
		"file:////srv/secret/a":                    Deny,
		"file://localhost/srv/secret/a":            Deny,
		"file://LOCALHOST/srv/secret/a":            Deny,
		"file://elsewhere/srv/secret/a":            Deny, // many servers read the path alone
		"file://srv/secret/a":                      Deny, // or cut off file://
		"file:///srv//secret/a":                    Deny,
		"file:///srv//secret/":                     Deny,
		"file:///srv/./secret/a":                   Deny,
		"file:///srv/%2e/secret/a":                 Deny,
		"file:///srv/%252e/s%2565cret/a":           Deny,
		"file:///srv%2f%2fsecret/a":                Deny,
		`file:///srv\secret\a`:                     Deny,
		"file:///srv/SECRET/a":                     Deny, // on a disk that does not look at case
		"file:///srv/\u017fecret/a":                Deny,
		"file:///srv/Cafe\u0301/a":                 Deny, // on a disk that does not look at how it is composed
		"file:///srv/CAFE%CC%81/a":                 Deny,
		"file:///srv/na\u00cff/a":                  Deny,
		"file:///srv/Cafe/a":                       Allow,
		"file:///srv/sec\tret/a":                   Deny,
		"file:///srv/s%\n65cret/a":                 Deny, // it is left out first, and %65 written out then
		"file:///srv/s%256\r5cret/a":               Deny,
		`file://a\b/srv/secret/a`:                  Deny, // a host, to those who take no \ for a slash
		`file:\\a\srv\secret\a`:                    Deny,
		"file://a%2fb/srv/s%65cret/a":              Deny, // a host, to those who write out the path alone
		" file:///srv/secret/a":                    Deny,
		"file:///srv//secret/a?b":                  Deny,
		"/srv/secret/a":                            Deny,
		"//srv/secret/a":                           Deny,
		"file:///srv/one.txt":                      Deny,
		"file:///srv/one.txt/":                     Deny,
		"file:///srv/one.txt?":                     Deny,
		"file:///srv/one.txt#a":                    Deny,
		"file:///srv/./one.txt#a":                  Deny,
		"file:///srv/one.txt.gz":                   Allow,
		"file:///srv/other/a":                      Deny, // the rule itself is spelled oddly
		"file:///srv/oth%65r/a":                    Deny,
		"file:///C:/Users/Admin/x":                 Deny,
		"file:///C:/Users//admin/x":                Deny,
		"file:///C:/Users/Bdmin2/x":                Allow,
		"https://inner.example/secret/a":           Deny,
		"HTTPS://INNER.example:443/secret/a":       Deny,
		"https://inner.example./secret/a":          Deny,
		"https://me:pw@inner.example/secret/a":     Deny,
		"https://inner.example/./secret/a":         Deny,
		`https:\\inner.example\secret\a`:           Deny,
		"https:/inner.example/secret/a":            Deny,
		"https://inner.example/s%\n65cret/a":       Deny,
		"https://in\u00adner.example/secret/a":     Deny,
		"https://inner\u3002example/secret/a":      Deny,
		"https://inner%ef%bc%8eexample/secret/a":   Deny,
		"https://me%23@inn%65r.example/secret/a":   Deny,
		`https://a\@inner.example/secret/a`:        Deny,
		"https://inner.example:00443/secret/a":     Deny,
		"https://stra\u00dfe.example/a":            Deny, // as Python looks it up
		"https://me@stra\u00dfe.example/a":         Deny,
		"https://xn--r8jz45g.example:08443/a":      Deny,
		"https://me@\u4f8b\u3048.example:008443/a": Deny,
		"https://xn--r8jz45g.example:80443/a":      Allow,
		"https://xn--bcher-kva.example/a":          Deny,
		"https://XN--bcher-KVA.example:443/a":      Deny,
		"https://\u4f8b\u3048.example:8443/a":      Deny,
		"https://xn--bcher-kvb.example/a":          Allow,
		"http://127.0.0.1./a":                      Deny,
		"http://2130706433/a":                      Deny,
		"http://0x7f.1:080/a":                      Deny,
		"http://0177.0.0.0x1/a":                    Deny,
		"http://\uff11\uff12\uff17.1/a":            Deny,
		"http://me@[::ffff:7f00:1]/a":              Deny,
		"http://[0:0:0:0:0:0:0:1]:81/a":            Deny,
		"http://[::0.0.0.1]:81/a":                  Deny,
		"http://[::1%25lo]:81/a":                   Deny, // as Go reads it
		"http://[::1%lo]:81/a":                     Deny,
		"postgres://[::1%25lo]/a":                  Deny,
		"http://10.0.0.1/a":                        Deny, // the rule itself is spelled oddly
		"http://10.1/a":                            Deny,
		"http://127.0.0.2/a":                       Allow,
		"http://[::1]:82/a":                        Allow,
		"notes://2130706433/a":                     Allow,
		"postgres://DB:05432/a":                    Deny, // new URL reads ports and [addresses] of all schemes
		"postgres://me@db:005432/a":                Deny,
		"postgres://db:54320/a":                    Allow,
		"postgres://[0:0::1]/a":                    Deny,
		"postgres://[::7]:99/a":                    Deny,
		"postgres://[::7]:90/a":                    Allow,
		"http://[::FFFF:1.2.3.4]/a":                Deny, // what fits a part of an address fits it as it is written, too
		"http://0XC0A80001/a":                      Deny,
		"postgres://[FD00:0:0:1:2:3:4:5]/a":        Deny,
		"redis://2130706433:6379/a":                Deny, // new URL leaves it as it is, and connecting to it does not
		"redis://me@0x7f.1:06379/a":                Deny,
		"redis://127.0.1:6379/a":                   Deny,
		"redis://127.0.0.2:6379/a":                 Allow,
		"redis://localho\u017ft:6379/a":            Deny, // as Python connects to it
		"redis://me@\u24dbocalhost.:06379/a":       Deny,
		"postgres://\uff44b:5432/a":                Deny,
		"https://xn--bcher-kva:81/a":               Deny, // what fits a part of a name in Punycode fits it in all letters
		"https://XN--bcher-kva:81/a":               Deny,
		"https://xn--bcher-kva.:081/a":             Deny,
		"https://b\u00fccher:81/a":                 Deny,
		"https://bucher:81/a":                      Allow,
		"Postgres://xn--bcher-kva:081/a":           Deny,
		"postgres://b\u00fccher:81/a":              Deny,
		"customers://1001/a":                       Deny,
		"customers://1002/a":                       Allow,
		"https://inner.example/secret%2Fa":         Deny,
		"https://inner.example/Secret/a":           Allow, // paths of others have letters as they are
		"https://inner.example:8443/secret/a":      Allow,
		"https://inner.example/public?x=/./secret": Allow,
		"notes://team/Secret/a":                    Deny,
		"NOTES://TEAM/Secret/a":                    Deny,
		"notes://team/./Secret/a":                  Deny,
		"notes://team/secret/a":                    Allow,
		"git://h/a/b":                              Deny,
		"git://h/a%2fb":                            Deny,
		"urn:isbn:1":                               Allow,
	} {
		if got := p.Decide(read(uri)); got.Effect != want {
			t.Errorf("%s: %s %s", uri, got.Effect, got.Reason)
		}
		seen := p.List(read(uri).Caller, &dragoman.List{Tools: dragoman.NewTools(nil), Entries: []dragoman.Entry{*read(uri).Entry}})
		if (len(seen.Entries) == 1) != (want == Allow) {
			t.Errorf("%s is seen: %d", uri, len(seen.Entries))
		}
	}
}

// Hosts in letters of their own are allowed where a rule names them, also with letters that
// readers of IDNA2003 take for others, and are then what those may not read.
func TestHostsInTheirOwnLetters(t *testing.T) {
	for _, host := range []string{"xn--80a1acny.xn--p1ai:8443", "inner.example:443", "inner.example:0443", "inner.example.", "[::1]:443", "[2001:DB8::1]", "[2001:db8:0:0:0:0:0:1]:8443", "10.0.0.1", "a_b.example:8443", "b\u00fccher.example", "\u03c3\u03b1\u03c2.gr", "\u03bc\u03bf\u03c5\u03c3\u03b5\u03af\u03bf.gr", "fa\u00df.example", "\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.ir", "xn--bcher-kva.example", "\u0915\u094d\u200d\u0937.in"} {
		allow := Rule{Allow: []string{"resource:files__https://" + host + "/*"}}
		if v := must(t, Config{Rules: []Rule{allow}}).Decide(read("https://" + host + "/a")); v.Effect != Allow {
			t.Errorf("%s: %s %s", host, v.Effect, v.Reason)
		}
		_, then := deviating(host)
		deny := Rule{Deny: []string{"resource:files__https://" + then + "/*"}}
		if v := must(t, Config{Rules: []Rule{allow, deny}}).Decide(read("https://" + host + "/a")); v.Effect != Deny {
			t.Errorf("%s, where %s is denied: %s", host, then, v.Effect)
		}
	}
	for _, name := range []string{"1001", "0x3e9", "M\u00fcller", "\u2163", "a b", "x."} { // hosts of other schemes may be no hosts
		if v := must(t, Config{Rules: []Rule{{Allow: []string{"resource:files__customers://" + name + "/*"}}}}).Decide(read("customers://" + name + "/a")); v.Effect != Allow {
			t.Errorf("%s: %s %s", name, v.Effect, v.Reason)
		}
	}
}

// What people are told beforehand of a URI is what is decided of it, however it is spelled.
func TestPreviewOfSpellings(t *testing.T) {
	p := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Deny: []string{"resource:files__file:///srv/secret/*"}}}})
	for _, uri := range []string{"file:///srv/secret/a", "file:///srv/Secret/a", "file:///srv/%73ecret/a", "file:///srv/public/a"} {
		preview, v := p.Preview(read(uri)), p.Decide(read(uri))
		if preview.Verdict.Effect != v.Effect || preview.Verdict.Rule != v.Rule || preview.Listed != (v.Effect == Allow) || preview.Open != nil {
			t.Errorf("%s: %+v, and it is decided: %s by %s", uri, preview, v.Effect, v.Rule)
		}
	}
}

// Whoever is asked about a URI answers what all rules ask of any of its spellings; so it is
// with all that one call asks for.
func TestApproversOfOtherSpellings(t *testing.T) {
	p := must(t, Config{Rules: []Rule{
		{Allow: []string{"*"}},
		{Ask: []string{"resource:files__file:///srv/*"}, Approvers: []string{"ada", "bob"}},
		{Ask: []string{"resource:files__file:///srv/secret/*"}, Approvers: []string{"ada"}},
		{Ask: []string{"resource:files__file:///srv/nobody/*"}, Approvers: []string{"eve"}},
	}})
	for uri, want := range map[string][]string{
		"file:///srv/public":        {"ada", "bob"},
		"file:///srv/secret/a":      {"ada"},
		"file:///srv/%73ecret/a":    {"ada"},
		"file:///srv/SECRET/a":      {"ada"},
		"file:///srv//secret/a":     {"ada"},
		"file://other/srv/secret/a": {"ada"},
		"file:///srv/nobody/a":      nil,
		"file:///srv/%6eobody/a":    nil,
	} {
		v := p.Decide(read(uri))
		if (v.Effect == Ask) != (want != nil) || !slices.Equal(v.Approvers, want) {
			t.Errorf("%s: %s by %v, want %v", uri, v.Effect, v.Approvers, want)
		}
	}
	for _, uris := range []string{`"file:///srv/public","file:///srv/secret/a"`, `"file:///srv/secret/a","file:///srv/public"`} {
		call := dragoman.Call{Method: "subscriptions/listen", Server: "files", Arguments: []byte(`{"notifications":{"resourceSubscriptions":[` + uris + `]}}`)}
		if v := p.DecideCall(alice, call, false); v.Effect != Ask || !slices.Equal(v.Approvers, []string{"ada"}) {
			t.Errorf("%s: %s by %v", uris, v.Effect, v.Approvers)
		}
	}
}

// What is spelled in any number of odd ways at once is denied as well.
func TestSpellingsTogether(t *testing.T) {
	p := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Deny: []string{"resource:files__file:///srv/secret/*"}}}})
	random := rand.New(rand.NewPCG(17, 1))
	for range 2000 {
		var b strings.Builder
		for _, r := range []string{"file:///", "File:/", "file://localhost/", "fILE:", "file:////"}[random.IntN(5)] {
			b.WriteRune(r)
		}
		for _, r := range "srv/secret/a" {
			switch spelled := fmt.Sprintf("%%%02x", r); random.IntN(6) {
			case 0:
				b.WriteString(spelled)
			case 1:
				b.WriteString("%25" + spelled[1:])
			case 2:
				b.WriteString(strings.ToUpper(string(r)))
			default:
				b.WriteRune(r)
			}
			if r == '/' {
				b.WriteString([]string{"", "/", "./", "%2e/", "//./"}[random.IntN(5)])
			}
		}
		if v := p.Decide(read(b.String())); v.Effect != Deny {
			t.Fatalf("%s: %s", b.String(), v.Effect)
		}
	}
}

// What rules or grants allow in one spelling is no way to what they do not name; and what
// they allow as it is spelled stays allowed.
func TestSpellingsOfAllowedURIs(t *testing.T) {
	for pattern, uris := range map[string]map[string]Effect{
		"resource:files__*.txt": {
			"file:///a.txt": Allow, "file:///etc/passwd?.txt": Deny, "file:///etc/passwd#.txt": Deny, "https://h/secret#.txt": Deny,
		},
		"resource:files__file:///srv/pub/*": {
			"file:///srv/pub/A": Allow, "file:///srv/pub/": Allow, "file:///srv/pub/a?x=1": Allow, "file:/srv/pub/a": Deny, "/srv/pub/a": Deny,
		},
		"resource:files__file:///srv/*/pub": {"file:///srv//pub": Deny, "file:///srv/./pub": Deny, "file:///srv/x/pub": Allow},
		"resource:files__demo://Static/*":   {"demo://Static/1": Allow, "demo://Static": Deny},
		"resource:files__*Static*":          {"demo://Static/1": Allow},
		"resource:files__https://good*":     {"https://good.example": Allow, "https://good@evil.example/": Deny},
		"resource:files__/notes/*":          {"/notes/a": Allow},
		"resource:files__urn:a:*":           {"urn:a:B": Allow},
	} {
		rules := must(t, Config{Rules: []Rule{{Allow: []string{pattern}}}})
		granted := must(t, Config{})
		for uri, want := range uris {
			if got := rules.Decide(read(uri)); got.Effect != want {
				t.Errorf("allow %s: %s: %s %s", pattern, uri, got.Effect, got.Reason)
			}
			r := read(uri)
			r.Caller = caller.Caller{ID: "key", Grants: []string{pattern}}
			if got := granted.Decide(r); got.Effect != want {
				t.Errorf("granted %s: %s: %s %s", pattern, uri, got.Effect, got.Reason)
			}
		}
	}
}

// An ask is about each spelling, too.
func TestSpellingsOfAskedURIs(t *testing.T) {
	p := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Ask: []string{"files__file:///srv/secret/*"}}}})
	for _, uri := range []string{"file:///srv/secret/a", "file:/srv//%73ecret/a"} {
		if v := p.Decide(read(uri)); v.Effect != Ask {
			t.Errorf("%s: %s", uri, v.Effect)
		}
	}
}

// A rule that denies a route denies it in other cases and with a slash at its end.
func TestSpellingsOfRoutes(t *testing.T) {
	p := must(t, Config{Rules: []Rule{{Allow: []string{"*"}}, {Deny: []string{"route:/v1/files*", "route:/v1/Batches"}}}})
	narrow := must(t, Config{Rules: []Rule{{Allow: []string{"route:/v1/files/*"}}}})
	for _, tt := range []struct {
		rules *Policy
		path  string
		want  Effect
	}{
		{p, "/v1/files", Deny},
		{p, "/v1/FILES", Deny},
		{p, "/V1/Files/f-1", Deny},
		{p, "/v1/batches", Deny},
		{p, "/v1/batches/", Deny},
		{p, "/v1/BATCHES//", Deny},
		{p, "/v1/embeddings", Allow},
		{narrow, "/v1/files/file-Ab", Allow},
		{narrow, "/v1/files/", Allow},
		{narrow, "/v1/FILES/x", Deny},
	} {
		r := Request{Caller: caller.Caller{ID: "c", Grants: []string{"*"}}, Action: Route, Name: tt.path}
		if got := tt.rules.Decide(r); got.Effect != tt.want {
			t.Errorf("%s: %s %s", tt.path, got.Effect, got.Reason)
		}
	}
}

// Whatever a URI is, its spellings are few, and none is itself.
func FuzzSpellings(f *testing.F) {
	for _, seed := range []string{"file:///a/./b//c", "FILE:%2525", "http://u@H:80/./a?b#c", "%", `\\h\x`, "a:", "//", "/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		all := spellings("resource", uri)
		if len(all) > 100 {
			t.Errorf("%d spellings", len(all))
		}
		for _, each := range all {
			if each.text == uri {
				t.Error("a spelling of its own")
			}
		}
	})
}

// read asks for a resource on behalf of somebody who may do everything.
func read(uri string) Request {
	return Request{
		Caller: caller.Caller{ID: "c", Grants: []string{"*"}}, Action: Read,
		Entry: &dragoman.Entry{Kind: dragoman.Resource, Server: "files", Original: uri},
	}
}

// TestLookedUp reads hosts as Node does, and leaves alone what encodes nothing.
func TestLookedUp(t *testing.T) {
	for host, want := range map[string]string{
		"xn--bcher-kva.example":            "bücher.example",
		"XN--bcher-KVA.example":            "bücher.example",
		"xn--80a1acny.xn--p1ai":            "почта.рф",
		"www.xn--r8jz45g.xn--zckzah":       "www.例え.テスト",
		"xn--fiqs8s":                       "中国",
		"xn--mgba3a4f16a.ir":               "ایران.ir",
		"xn--e28h.example":                 "😀.example",
		"example.com":                      "example.com",
		"\u0130nner.example":               "i\u0307nner.example", // and not inner.example
		"[::1]":                            "[::1]",
		"a_b.example":                      "a_b.example",
		"xn--bcher-kv":                     "xn--bcher-kv",
		"xn--99999999999999999999.example": "xn--99999999999999999999.example",
	} {
		if got := lookedUp(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// TestLongHosts: a host that is too long to be one is not encoded, which would take the square
// of its length.
func TestLongHosts(t *testing.T) {
	long := strings.Repeat("\u00fc", hostname.Max)
	if encoded, then := deviating(long); encoded != long || then != long {
		t.Error("it was encoded")
	}
}
