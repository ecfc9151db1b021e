package openai

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

// Some models take no tools, and their upstreams refuse every request that has
// some. A request that asked for none must not fail for ours: it is sent once
// more without them, and the model is remembered.

// toollessFor is how long a model that refused tools gets none. Then it is tried
// again: models change behind their names.
const toollessFor = 10 * time.Minute

const maxToolless = 1024

// toollessModel names the request's model among those of all upstreams.
func (c *Chat) toollessModel() string {
	return c.options.Dialect.Name() + "\x00" + string(c.request.object.Get("model"))
}

// implicit reports whether the request asked for no tools at all.
func (c *Chat) implicit() bool {
	return len(c.request.Servers) == 0 && len(c.request.tools) == 0 && (c.choice.mode == "" || c.choice.mode == "auto")
}

// refusesTools reports whether an upstream's error means that it would have
// answered the request without our tools.
func (c *Chat) refusesTools(err error) bool {
	if len(c.rounds) > 0 || len(c.ours.functions) == 0 || !c.implicit() {
		return false
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusNotImplemented:
		// There is no code for it: each API says it in words of its own, and all
		// of them say tool or function.
		said := bytes.ToLower(append([]byte(e.Message), e.Body...))
		return bytes.Contains(said, []byte("tool")) || bytes.Contains(said, []byte("function"))
	}
	return false
}

// withoutTools takes our tools back and says so.
func (c *Chat) withoutTools() {
	c.ours = makeOffer(nil, c.options.Dialect, 0)
	model, _ := rawjson.String(c.request.object.Get("model"))
	c.out.w.Header().Set("X-Dragoman-Tools", "withheld: the model takes no tools")
	c.options.Log.Info("tools withheld from a model that takes none", "upstream_model", strings.ToValidUTF8(model, ""))
}

// refused remembers that a model takes no tools.
func (s *Offers) refused(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.toolless == nil || len(s.toolless) >= maxToolless {
		s.toolless = map[string]time.Time{}
	}
	s.toolless[model] = time.Now()
}

// refuses reports whether a model is remembered to take no tools.
func (s *Offers) refuses(model string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, ok := s.toolless[model]
	if ok && time.Since(since) >= toollessFor {
		delete(s.toolless, model)
		return false
	}
	return ok
}
