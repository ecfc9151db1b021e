package session

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// maxRequest bounds what is kept of one request to a model, in bytes: its beginning, and
// more of its end, where what is new stands.
const (
	maxRequest     = 24 << 10
	requestBegins  = 4 << 10
	maxWrittenKept = 32 // calls of one message
)

// Written are the arguments of a call as its model wrote them, and what was repaired in
// them on the way to the server's own form.
type Written struct {
	ID, Raw string
	Repairs []string
}

// heard keeps a message of the model, with what was asked of it. The event of the loop
// that follows makes it one of its phases; one that none follows stays as it is.
func (s *Session) heard(h model.Heard) {
	if s.run == nil {
		return
	}
	step := Step{Asked: asked(h.Request), Said: text(h.Message), In: int(h.Usage.In), Out: int(h.Usage.Out)}
	if step.In+step.Out == 0 && h.Err == nil { // its API does not say
		step.In, step.Out, step.Guessed = rawjson.Size(h.Request)/3, len(h.Message)/3, true
	}
	if h.Err != nil {
		step.Phase, step.Problem = "decide", clip.Text(h.Err.Error(), 400)
	}
	for _, w := range h.Calls[:min(len(h.Calls), maxWrittenKept)] {
		one := Written{ID: clip.Text(w.ID, 100), Raw: clip.Text(w.Raw, maxLiveText)}
		for _, r := range w.Repairs[:min(len(w.Repairs), maxWrittenKept)] {
			one.Repairs = append(one.Repairs, strings.TrimSpace(clip.Text(r.Rule+" "+r.Path, 200)))
		}
		step.Written = append(step.Written, one)
	}
	s.live.add(s.run, step)
}

// asked is the body of a request without its tools, which are counted, as a text that is
// cut in its middle.
func asked(parts [][]byte) string {
	room := bodies.Get().(*[]byte)
	defer func() {
		if cap(*room) <= maxPooledBody {
			bodies.Put(room)
		}
	}()
	whole := (*room)[:0]
	for _, p := range parts {
		whole = append(whole, p...)
	}
	*room = whole
	o, err := rawjson.ParseObject(whole)
	if err != nil {
		return cutInside([][]byte{whole})
	}
	if tools := o.Get("tools"); tools != nil {
		all, _ := rawjson.Elements(tools)
		o.Set("tools", rawjson.Quote(fmt.Sprintf("%d functions, %d bytes: the catalogue shows them", len(all), len(tools))))
	}
	var large map[string][][]byte
	for name, value := range o.All() {
		if len(value) > requestBegins {
			if large == nil {
				large = map[string][][]byte{}
			}
			large[name] = [][]byte{value}
		}
	}
	return cutInside(o.Parts(large))
}

// bodies are rooms in which the parts of a body are put together; what is kept of one is a
// copy.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// maxPooledBody is the largest room that is kept for another body, in bytes.
const maxPooledBody = 1 << 20

// cutInside returns what parts say, with what is too much left out.
func cutInside(parts [][]byte) string {
	size := rawjson.Size(parts)
	if size <= maxRequest {
		return string(bytes.Join(parts, nil))
	}
	begin := strings.ToValidUTF8(string(within(parts, 0, requestBegins)), "")
	end := strings.ToValidUTF8(string(within(parts, size-(maxRequest-requestBegins), size)), "")
	return fmt.Sprintf("%s\n… %d bytes are left out …\n%s", begin, size-len(begin)-len(end), end)
}

// within returns the bytes of parts from a place to another.
func within(parts [][]byte, from, to int) (some []byte) {
	for _, p := range parts {
		if from < len(p) && to > 0 {
			some = append(some, p[max(from, 0):min(to, len(p))]...)
		}
		from, to = from-len(p), to-len(p)
	}
	return some
}

// joins puts an event of the loop and the message that it tells of into one step.
func (r *Run) joins(s *Step) bool {
	if s.Tool != "" || len(r.Steps) == 0 {
		return false
	}
	last := &r.Steps[len(r.Steps)-1]
	if last.Asked == "" || last.Phase != "" {
		return false
	}
	last.At, last.Phase, last.Round, last.Took, last.Calls = s.At, s.Phase, s.Round, s.Took, s.Calls
	return true
}

// wrote is what the model wrote for a call; nil where it is not known.
func (r *Run) wrote(id string) *Written {
	for n := len(r.Steps) - 1; n >= 0; n-- {
		all := r.Steps[n].Written
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].ID == id {
				return &all[i]
			}
		}
		if all != nil {
			return nil // ids are those of one message
		}
	}
	return nil
}
