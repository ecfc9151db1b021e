package lint

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

const specHTTP = "MCP 2026-07-28, Streamable HTTP"

// httpRules hold for servers over HTTP.
var httpRules = []Rule{
	{
		ID: "P007", Severity: Error, Title: "header and body may differ",
		Why:    "Proxies decide by the header what may pass; a server that reads only the body lets everything pass.",
		Advice: "Compare Mcp-Method, Mcp-Name and MCP-Protocol-Version with the body, and answer 400 with -32020.",
		Source: specHTTP + " (SEP-2243)",
		Live: answered(askMismatch, func(a Answer, say Say) {
			if !(a.failed() && a.Code == -32020) {
				say(here, "a request whose Mcp-Method names another method got %s", a.says())
			}
		}),
	},
	{
		ID: "P011", Severity: Error, Title: "answers of one client reach another",
		Why:    "Ids are unique for one client only; a server that shares its transport sends one user's data to another (CVE-2026-25536).",
		Advice: "Keep a transport for each client.",
		Source: "JSON-RPC 2.0; CVE-2026-25536",
		Live: answered(askMixed, func(_ Answer, say Say) {
			say(here, "two clients asked with the same id at once, and one got the other's answer")
		}),
	},
	{
		ID: "P012", Severity: Warning, Title: "notifications get an answer",
		Why:    "A client that gets a body where there is none takes it for the next message.",
		Advice: "Answer 202 without a body.",
		Source: specHTTP,
		Live: answered(askNotification, func(a Answer, say Say) {
			if a.Err == nil && a.Status == 0 { // on standard output
				if a.Result != nil || a.Code != 0 {
					say(here, "a notification got %s", a.says())
				}
				return
			}
			if a.Err == nil && (a.Status != http.StatusAccepted || a.Result != nil || strings.TrimSpace(a.Body) != "") {
				say(here, "a notification got HTTP %d%s", a.Status, map[bool]string{true: " with a body"}[a.Result != nil || a.Body != ""])
			}
		}),
	},
	{
		ID: "P013", Severity: Info, Title: "streams that proxies hold back",
		Why:    "nginx and others collect a stream before they pass it on, unless told not to; progress then comes all at once.",
		Advice: "Send X-Accel-Buffering: no with event streams.",
		Source: specHTTP,
		Live: onWeb(func(_ *Live, w *Web, say Say) {
			if n := len(w.Streams); n > 0 && !slices.ContainsFunc(w.Streams, func(h http.Header) bool { return h.Get("X-Accel-Buffering") == "no" }) {
				say(here, "%s without X-Accel-Buffering", count(n, "event stream"))
			}
		}),
	},
	{
		ID: "P014", Severity: Warning, Title: "only the old HTTP+SSE transport",
		Why:     "It has been deprecated since 2025-03-26, and newer clients have dropped it.",
		Advice:  "Serve Streamable HTTP on the same address.",
		Source:  "MCP 2025-03-26, Transports",
		Gateway: "The gateway still speaks it.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Transport == "sse" {
				say(here, "the server speaks HTTP+SSE")
			}
		},
	},
	{
		ID: "P035", Severity: Warning, Title: "GET is answered with something else than a stream",
		Why:    "Clients ask by GET whether the server has a stream for them; what comes with status 200 they read as one, and find nothing in it.",
		Advice: "Answer GET with an event stream, or with 405; serve pages for people under another address, or to those who accept text/html alone.",
		Source: "MCP 2025-11-25, Streamable HTTP (listening for messages)",
		Live: answered(askGet, func(a Answer, say Say) {
			if a.Status/100 == 2 && !isStream(a.Header) {
				say(here, "GET for an event stream got HTTP %d with %s", a.Status, quote(cmp.Or(a.Header.Get("Content-Type"), "no content type")))
			}
		}),
	},
	{
		ID: "P036", Severity: Warning, Title: "a version in the header that there is not is served",
		Why:    "The header says by which rules the client reads the answer; a server that does not look at it answers by others.",
		Advice: "Answer 400 to requests whose MCP-Protocol-Version you do not speak.",
		Source: "MCP 2025-06-18, Transports (protocol version header: MUST respond with 400)",
		Live: answered(askHeader, func(a Answer, say Say) {
			if a.Result != nil {
				say(here, "a request with MCP-Protocol-Version: %s was answered", noVersion)
			}
		}),
	},
	{
		ID: "R004", Severity: Warning, Title: "a session that is over is not refused with 404",
		Why:    "404 is how a client learns that it must begin anew; with anything else it stays broken until it is restarted.",
		Advice: "Answer 404 to requests with a session that you do not know.",
		Source: "MCP 2025-11-25, Session management",
		Live: answered(askOldSession, func(a Answer, say Say) {
			if a.Status != http.StatusNotFound {
				say(here, "a request in a session that was deleted got HTTP %d", a.Status)
			}
		}),
	},
	{
		ID: "R005", Severity: Info, Title: "too many requests, and no word on when to try again",
		Why:    "Without Retry-After clients try again at once, or never.",
		Advice: "Send Retry-After with 429 and 503.",
		Source: "RFC 9110, 10.2.3",
		Live: func(_ *Server, l *Live, say Say) {
			for _, a := range slices.Concat(l.Crowd, answersOf(l.Calls)) {
				if (a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable) && a.Header.Get("Retry-After") == "" {
					say(here, "HTTP %d came without Retry-After", a.Status)
					return
				}
			}
		},
	},
}

func answersOf(calls []Called) []Answer {
	answers := make([]Answer, len(calls))
	for i, c := range calls {
		answers[i] = c.Answer
	}
	return answers
}

// webRules are about who gets in.
var webRules = []Rule{
	{
		ID: "X008", Severity: Error, Title: "web pages can use the server",
		Why:    "Without a check of Origin and Host, any page that a user of this machine visits can call the tools (DNS rebinding).",
		Advice: "Answer 403 to an Origin that is not yours, and on loopback to a Host that is not.",
		Source: specHTTP + " (security)",
		Live: func(_ *Server, l *Live, say Say) {
			if a, ok := l.Answers[askOrigin]; ok && a.Result != nil {
				say(here, "a request from https://%s was served", foreign)
			}
			if a, ok := l.Answers[askHost]; ok && a.Result != nil {
				say(here, "a request to the host %s was served on loopback", foreign)
			}
		},
	},
	{
		ID: "X009", Severity: Error, Title: "open to everybody, or readable by everybody",
		Why:    "Whoever finds the address can call the tools; without TLS whoever stands on the way can read and change calls.",
		Advice: "Ask for authorization, and serve https.",
		Source: "MCP 2026-07-28, Authorization; OWASP MCP07",
		Live: onWeb(func(l *Live, w *Web, say Say) {
			if s := l.Answers[askStranger].Status; l.Era == modern && strangerPasses(l) && (s == http.StatusUnauthorized || s == http.StatusForbidden) {
				say(here, "without credentials server/discover is refused, and tools/list is answered")
				return
			}
			if w.Loopback {
				return
			}
			if w.Plain {
				say(here, "the address %s is not https", quote(w.URL))
			}
			if a, ok := l.Answers[askAnonymous]; l.Failure == nil && (!w.Token || ok && a.Result != nil) && !sessionIsLogin(l) {
				say(here, "the tools are listed without any credentials")
			}
		}),
	},
	{
		ID: "X010", Severity: Error, Title: "authorization that clients cannot find",
		Why:    "Clients learn from the metadata of the protected resource where to get a token, and for which resource.",
		Advice: "Serve /.well-known/oauth-protected-resource with your own address as resource.",
		Source: "RFC 9728; MCP 2026-07-28, Authorization",
		Live: withMetadata(func(w *Web, m *Metadata, say Say) {
			switch {
			case m.Err != "":
				say(here, "there is no metadata of the protected resource: %s", m.Err)
			case m.Resource != w.URL && m.Resource != strings.TrimSuffix(w.URL, "/"):
				say(here, "the metadata is about %s, not about %s", quote(m.Resource), quote(w.URL))
			case len(m.Servers) == 0:
				say(here, "the metadata names no authorization server")
			}
		}),
	},
	{
		ID: "X011", Severity: Error, Title: "authorization server that clients must refuse",
		Why:    "A document of another issuer, no PKCE with S256 or an endpoint without TLS let codes and tokens be stolen.",
		Advice: "Serve RFC 8414 metadata with the exact issuer, code_challenge_methods_supported with S256, and https endpoints.",
		Source: "RFC 8414; MCP 2026-07-28, Authorization",
		Live: withMetadata(func(_ *Web, m *Metadata, say Say) {
			switch {
			case m.Err != "" || len(m.Servers) == 0:
			case m.IssuerErr != "":
				say(here, "there is no metadata of the authorization server: %s", m.IssuerErr)
			case m.Issuer != m.Servers[0]:
				say(here, "the document of %s says that it is of %s", quote(m.Servers[0]), quote(m.Issuer))
			case !slices.Contains(m.Methods, "S256"):
				say(here, "the authorization server does not offer PKCE with S256")
			case m.Missing != "":
				say(here, "the document of the authorization server has no %s", m.Missing)
			case m.Insecure != "":
				say(here, "the endpoint %s is not https", quote(m.Insecure))
			}
		}),
	},
	{
		ID: "X012", Severity: Error, Title: "a forged token is accepted",
		Why:    "A token without a signature, for somebody else and long expired, opens the door.",
		Advice: "Check signature, algorithm, issuer, audience and expiry of each token.",
		Source: "MCP 2026-07-28, Authorization (token handling)",
		Live: func(_ *Server, l *Live, say Say) {
			forged, ok := l.Answers[askForged]
			if ok && forged.Result != nil && l.Answers[askAnonymous].Result == nil {
				say(here, "a token with the algorithm none was accepted")
			}
		},
	},
	{
		ID: "X015", Severity: Error, Title: "session that stands in for a login",
		Why:    "Session ids travel in headers and end up in logs; whoever finds one is taken for the person who opened the session.",
		Advice: "Check the credentials of every request, and that the session is theirs.",
		Source: "MCP security best practices (session hijacking): sessions are not for authentication",
		Live: func(_ *Server, l *Live, say Say) {
			if sessionIsLogin(l) {
				say(here, "without credentials a greeting is refused, and a request in the session of somebody else is answered")
			}
		},
	},
	{
		ID: "X013", Severity: Warning, Title: "refusal without directions",
		Why:    "A client that gets 401 without WWW-Authenticate does not know where to send its user.",
		Advice: "Send WWW-Authenticate: Bearer resource_metadata=\"…\".",
		Source: "RFC 9728, 5.1",
		Live: withMetadata(func(_ *Web, m *Metadata, say Say) {
			if !slices.ContainsFunc(m.Challenges, metadataLink.MatchString) {
				say(here, "the refusal does not name the metadata")
			}
		}),
	},
	{
		ID: "X027", Severity: Error, Title: "refusal that no client takes for one",
		Why:    "Clients send their user to log in, or renew a token, at 401 alone; at 403, at 200 with an error inside and at anything else they give up.",
		Advice: "Answer 401 to requests without a token, or with one that is not valid; 403 is for a valid one without the scope.",
		Source: "MCP 2026-07-28, Authorization (error handling); RFC 6750, 3.1",
		Live: withMetadata(func(_ *Web, m *Metadata, say Say) {
			if m.Status != http.StatusUnauthorized {
				say(here, "a request without credentials was refused with HTTP %d", m.Status)
			}
		}),
	},
	{
		ID: "P031", Severity: Info, Title: "protected, and there is no token",
		Why:    "Of a server that lets nobody in, only its authorization can be looked at.",
		Advice: "Give a token: dragoman login, or a header in the configuration.",
		Source: ours,
		Live: func(_ *Server, l *Live, say Say) {
			if l.protected() {
				say(here, "the server is protected; give a token")
			}
		},
	},
	{
		ID: "X014", Severity: Warning, Title: "scopes that ask for everything",
		Why:    "Clients ask for all scopes that are listed; one stolen token then opens everything.",
		Advice: "List the least that is needed to begin with.",
		Source: "MCP security best practices (scope minimisation)",
		Live: withMetadata(func(_ *Web, m *Metadata, say Say) {
			for _, s := range m.Scopes {
				if s == "*" || s == "all" || s == "offline_access" || s == "full-access" || strings.HasSuffix(s, ":*") {
					say(here, "scopes_supported has %s", quote(s))
					return
				}
			}
		}),
	},
	{
		ID: "X017", Severity: Warning, Title: "every web page may read the answers",
		Why:    "Access-Control-Allow-Origin: * hands the tools' results to any page that the user has open.",
		Advice: "Name the origins that you know, or leave the header out.",
		Source: "CVE-2026-9739; Fetch standard",
		Live: answered(askOrigin, func(a Answer, say Say) {
			if allowed := a.Header.Get("Access-Control-Allow-Origin"); allowed == "*" || allowed == "https://"+foreign {
				say(here, "Access-Control-Allow-Origin is %s", quote(allowed))
			}
		}),
	},
	{
		ID: "X018", Severity: Warning, Title: "certificate that clients refuse",
		Why:    "People learn to click warnings away, and programs do not connect.",
		Advice: "Renew the certificate, for the right name and from an authority that clients know.",
		Source: "RFC 9110, 4.3.4",
		Live: onWeb(func(_ *Live, w *Web, say Say) {
			if w.TLS != "" {
				say(here, "%s", w.TLS)
			}
		}),
	},
	{
		ID: "X019", Severity: Warning, Title: "local server that the whole network reaches",
		Why:    "What listens on all addresses is open to everybody in the same café.",
		Advice: "Listen on 127.0.0.1.",
		Source: specHTTP + " (security)",
		Live: onWeb(func(_ *Live, w *Web, say Say) {
			if w.Exposed != "" {
				say(here, "the server on loopback can be reached at %s, too", w.Exposed)
			}
		}),
	},
}

// sessionIsLogin reports whether the id of a session opens what credentials do.
func sessionIsLogin(l *Live) bool { return l.Era != modern && strangerPasses(l) }

// strangerPasses reports whether somebody without credentials is refused at first, and then
// not.
func strangerPasses(l *Live) bool {
	stranger, asked := l.Answers[askStranger]
	return asked && stranger.Result == nil && stranger.Err == nil && l.Answers[askAnonymous].Result != nil
}
