package console

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/door"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/observe"
)

// maxNamed bounds how many tools of a server the playground names, each with a box: of
// more, all are taken or none.
const maxNamed = 60

type playgroundData struct {
	Models  []string // names that can be asked for, as far as they are known
	Model   string
	Servers []playServer
	Base    string // where the API is, for what is copied
	Keys    bool   // the API asks for a key
	Message string
}

// A playServer is a server whose tools can be chosen.
type playServer struct {
	Label string
	Tools []dragoman.Tool
	Many  int // how many there are, where they are too many to be named
}

// playground is the page of a chat: what the client sees on the left, and what happens on
// the right. Its address has the model and the message.
func (c *Console) playground(r *request) error {
	s, err := c.open(r, "")
	if err != nil {
		return err
	}
	list, err := s.Tools.List(r.Context())
	if err != nil {
		return err
	}
	asked := r.URL.Query()
	d := playgroundData{Models: c.models(r), Base: c.base(r), Keys: c.o.Required(), Message: asked.Get("message")}
	d.Model = cmp.Or(asked.Get("model"), c.o.Now().Upstreams.DefaultModel(), append(d.Models, "")[0])
	for _, t := range list.Tools.All() {
		if t.Quarantined != nil || t.Server == "" {
			continue
		}
		at := slices.IndexFunc(d.Servers, func(s playServer) bool { return s.Label == t.Server })
		if at < 0 {
			at = len(d.Servers)
			d.Servers = append(d.Servers, playServer{Label: t.Server})
		}
		server := &d.Servers[at]
		if server.Many++; server.Many <= maxNamed {
			server.Tools = append(server.Tools, t)
		}
	}
	for i := range d.Servers {
		if server := &d.Servers[i]; server.Many > maxNamed {
			server.Tools = nil
		}
	}
	return c.show(r, "playground.html", view{Title: "Playground", Here: Root + "playground", Data: d})
}

// models are the names that the configuration has for models and that the person may use;
// patterns are not among them.
func (c *Console) models(r *request) (all []string) {
	for match, up := range c.o.Now().Upstreams.Routes() {
		name := nameOf(match, up)
		if !strings.ContainsAny(name, "*?[") && c.o.Gate.Sees(r.who, policy.Model, name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// base is where the API is, as this browser reaches it.
func (c *Console) base(r *request) string {
	if c.o.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// chat asks a model as the person who is signed in: it is the API's own route, so that
// what holds for every client holds here. What runs is kept for the page to show.
func (c *Console) chat(r *request) error {
	body, err := door.ReadBody(r.w, r.Request, c.o.MaxBody())
	if err != nil {
		return err
	}
	c.o.Live.Await(observe.RequestOf(r.Context()))
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Content-Type": {"application/json"}} // no cookie goes further than here
	asked.Body, asked.ContentLength, asked.URL.RawQuery = io.NopCloser(bytes.NewReader(body)), int64(len(body)), ""
	c.o.Now().Chat(r.w, asked, r.who)
	return nil
}
