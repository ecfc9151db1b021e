package lint

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

const sdk = "the official SDK for TypeScript, client"

// officialRules look for what the official clients refuse, be it that others do not:
// whoever uses them cannot use the server.
var officialRules = []Rule{
	{
		ID: "P026", Severity: Error, Title: "server that does not say who it is",
		Why:    "serverInfo with name and version is required; the official clients refuse the handshake without.",
		Advice: "Send serverInfo with a name and a version in the answer to initialize.",
		Source: "MCP 2025-11-25, Lifecycle (InitializeResult); " + sdk,
		Live: func(s *Server, l *Live, say Say) {
			if l.Failure == nil && l.Era == "legacy" && (s.Name == "" || s.Version == "") {
				say(here, "the answer to initialize has no serverInfo with name and version")
			}
			if l.Failure == nil && l.Era == "legacy" && rawjson.IsNull(l.Capabilities) {
				say(here, "the answer to initialize has no capabilities")
			}
		},
	},
	{
		ID: "P027", Severity: Error, Title: "answer of another content type",
		Why:    "The official clients read application/json and text/event-stream alone, and refuse whatever else it says it is.",
		Advice: "Send Content-Type: application/json, or text/event-stream with a stream.",
		Source: specHTTP + "; " + sdk,
		Live: onWeb(func(_ *Live, w *Web, say Say) {
			if len(w.Types) > 0 {
				say(here, "a message came as %s", quote(w.Types[0]))
			}
		}),
	},
	{
		ID: "P028", Severity: Error, Title: "tools that are served and not declared",
		Why:    "A client that goes by the capabilities never asks for them, and shows a server without tools.",
		Advice: "Declare the capability tools.",
		Source: "MCP, Capability negotiation; " + sdk,
		Live: func(s *Server, l *Live, say Say) {
			if l.Undeclared {
				say(here, "tools/list answers %s, and the capabilities have no tools", count(len(s.Tools), "tool"))
			}
			for _, capability := range l.Unsaid {
				say(here, "there are %s, and the capabilities do not say so", capability)
			}
		},
	},
	{
		ID: "P029", Severity: Error, Title: "result with an HTTP status that says it failed",
		Why:    "Clients look at the status first, and never see the result.",
		Advice: "Send results with status 200.",
		Source: specHTTP + "; " + sdk,
		Live: func(_ *Server, l *Live, say Say) {
			for _, a := range slices.Concat(answersOf(l.Calls), l.answers()) {
				if a.Result != nil && a.Status >= 300 {
					say(here, "a result of %s came with HTTP %d", a.Method, a.Status)
					return
				}
			}
		},
	},
	{
		ID: "P030", Severity: Error, Title: "any version of the protocol is said to be spoken",
		Why:    "A server that repeats whatever version it is asked for lets clients go by rules that it does not know; those that it does not name one to refuse the handshake.",
		Advice: "Answer initialize with the version that was asked for only where you speak it, else with your latest.",
		Source: "MCP 2025-11-25, Lifecycle (version negotiation); " + sdk,
		Live: answered(askGreeting, func(a Answer, say Say) {
			if a.Result == nil {
				return
			}
			o, err := rawjson.ParseObject(a.Result)
			if err != nil {
				return
			}
			switch version, _ := rawjson.String(o.Get("protocolVersion")); version {
			case noVersion:
				say(here, "a greeting with the version %s, which there is not, was answered with the same", noVersion)
			case "":
				say(here, "a greeting with the version %s, which there is not, was answered without protocolVersion", noVersion)
			}
		}),
	},
	{
		ID: "O019", Severity: Error, Title: "picture that is not what its type says",
		Why:    "Model providers check the bytes, and refuse the whole request for one picture with a wrong type.",
		Advice: "Name the type that the bytes have.",
		Source: "Messages and Chat APIs (media types of images); WHATWG MIME Sniffing, 6.1",
		Live: func(_ *Server, l *Live, say Say) {
			for _, c := range l.Calls {
				if what := wrongPicture(c.Result); what != "" {
					say(of(c, ""), "%s", what)
					return
				}
			}
			for _, r := range l.Texts {
				if what := wrongPicture(r.Result); what != "" {
					say(here, "in %s: %s", quote(r.Name), what)
					return
				}
			}
		},
	},
}

// noVersion is a version of the protocol that there is not, nor will be.
const noVersion = "1900-01-01"

// answers returns all answers to single requests, in the order of their names.
func (l *Live) answers() (all []Answer) {
	for _, name := range slices.Sorted(maps.Keys(l.Answers)) {
		all = append(all, l.Answers[name])
	}
	return all
}

// greet sends a greeting with a version that there is not, outside of any connection; of
// the modern era, which has no greeting, one with what its requests carry.
func (w *watcher) greet() {
	if w.live.Transport == "sse" {
		return
	}
	wire, err := w.open()
	if err != nil {
		return // the first connection came about; that this one did not shows nowhere
	}
	defer wire.end()
	c := &connection{wire: wire, client: w.main.client}
	version, name := noVersion, askGreeting
	if c.client.modern() {
		version, name = "2025-11-25", askEnvelope
	}
	m := w.message(c, "initialize", params("protocolVersion", string(rawjson.Quote(version)),
		"capabilities", `{}`, "clientInfo", `{"name":"dragoman-lint","version":"1"}`))
	a := w.send(c, m, patience)
	w.note(name, a)
	if id := a.Header.Get("Mcp-Session-Id"); id != "" {
		w.endSession(id)
	}
}

// endSession ends a session that nobody uses.
func (w *watcher) endSession(id string) {
	web, ok := w.main.wire.(*webWire)
	if !ok {
		return
	}
	req, err := http.NewRequestWithContext(w.ctx, http.MethodDelete, web.url, nil)
	if err != nil {
		return
	}
	maps.Copy(req.Header, web.header)
	req.Header.Set("Mcp-Session-Id", id)
	if resp, err := web.client.Do(req); err == nil {
		resp.Body.Close()
	}
}

// ofTheProtocol reports whether messages may have a content type.
func ofTheProtocol(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || media == "text/event-stream")
}

// blockFault says why a block of content is none (MCP, ContentBlock); empty for one that
// the official clients take.
func blockFault(raw json.RawMessage) string {
	block, err := rawjson.ParseObject(raw)
	if err != nil || rawjson.IsNull(block.Get("type")) {
		return "has no type"
	}
	kind, _ := rawjson.String(block.Get("type"))
	switch kind {
	case "text":
		if _, ok := rawjson.String(block.Get("text")); !ok {
			return "is of type text and has no text"
		}
	case "image", "audio":
		return mediaFault(kind, block)
	case "resource":
		inner, err := rawjson.ParseObject(block.Get("resource"))
		if err != nil {
			return "is of type resource and has none"
		}
		if uri, _ := rawjson.String(inner.Get("uri")); uri == "" {
			return "has a resource without a URI"
		}
		_, text := rawjson.String(inner.Get("text"))
		blob, bytes := rawjson.String(inner.Get("blob"))
		if !text && !bytes {
			return "has a resource without text or blob"
		}
		if _, ok := fromBase64(blob); !ok {
			return "has a blob that is not base64"
		}
	case "resource_link":
		uri, _ := rawjson.String(block.Get("uri"))
		if name, _ := rawjson.String(block.Get("name")); uri == "" || name == "" {
			return "is a link to a resource without URI or name"
		}
	default:
		return "has the unknown type " + quote(kind)
	}
	return ""
}

func mediaFault(kind string, block *rawjson.Object) string {
	data, ok := rawjson.String(block.Get("data"))
	media, _ := rawjson.String(block.Get("mimeType"))
	_, valid := fromBase64(data)
	switch {
	case !ok:
		return "is of type " + kind + " and has no data"
	case !valid:
		return "is of type " + kind + ", and its data are not base64"
	case media == "":
		return "is of type " + kind + " and has no mimeType"
	}
	return ""
}

// fromBase64 decodes as clients do: white space and padding may be left out or there.
func fromBase64(text string) ([]byte, bool) {
	text = strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '\r' || r == '\t' {
			return -1
		}
		return r
	}, text)
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return b, err == nil
}

// wrongPicture says which picture in an answer is not what its type says; empty for
// none. It looks at the kinds that model providers take, whose beginnings are certain.
func wrongPicture(result json.RawMessage) string {
	o, err := rawjson.ParseObject(result)
	if err != nil {
		return ""
	}
	blocks, _ := rawjson.Elements(o.Get("content")) // none: no pictures
	contents, _ := rawjson.Elements(o.Get("contents"))
	for _, raw := range slices.Concat(blocks, contents) {
		block, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		if inner, err := rawjson.ParseObject(block.Get("resource")); err == nil {
			block = inner
		}
		media, _ := rawjson.String(block.Get("mimeType"))
		data, ok := rawjson.String(block.Get("data"))
		if !ok {
			data, ok = rawjson.String(block.Get("blob"))
		}
		bytes, valid := fromBase64(data)
		if text, isText := rawjson.String(block.Get("text")); isText && strings.HasPrefix(media, "image/") && !strings.Contains(media, "svg") {
			return fmt.Sprintf("%d characters of text say that they are %s", len(text), media)
		}
		if media = strings.ToLower(media); media == "image/jpg" {
			media = "image/jpeg"
		}
		if !ok || !valid || !slices.Contains(pictures, media) {
			continue
		}
		if is := http.DetectContentType(bytes); is != media {
			return fmt.Sprintf("the picture says it is %s, and its bytes are %s", media, is)
		}
	}
	return ""
}

// pictures are the types that model providers take.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
