package meter

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// A sum is what is known of an answer's cost.
type sum struct {
	usage model.Usage // as the API says; zero where it has not
	tail  []byte      // the end of a document
	bytes int64       // of a document, or of the data of all events
	// Events of a stream differ in what they say, and have the rest in common: what
	// an event has beyond the shortest one is text, and each is a token at least.
	count, shortest int64
}

// maxEnvelope is how much of an event is taken for what all have in common, in bytes:
// there may be one alone.
const maxEnvelope = 400

// maxTail is how much of the end of a document is looked at for its usage. The client's
// metadata may stand behind that, which are 16 texts of 512 characters with their names.
const maxTail = 64 << 10

func (s *sum) document(part []byte) {
	s.bytes += int64(len(part))
	s.tail = append(s.tail, part...)
	if extra := len(s.tail) - maxTail; extra > maxTail {
		s.tail = append(s.tail[:0], s.tail[extra:]...)
	}
}

func (s *sum) event(data []byte) {
	n := int64(len(data))
	if s.count == 0 {
		s.shortest = maxEnvelope
	}
	s.shortest = min(s.shortest, n)
	s.count, s.bytes = s.count+1, s.bytes+n
	if u := saidIn(data); u.Total > 0 {
		s.usage = most(s.usage, u)
	}
}

// most joins what two events of a stream say: one API tells of the way in at the
// beginning, and of the way out at the end, and others tell of all that there is so far.
func most(a, b model.Usage) model.Usage {
	u := model.Usage{In: max(a.In, b.In), Out: max(a.Out, b.Out), Cached: max(a.Cached, b.Cached), Reasoning: max(a.Reasoning, b.Reasoning)}
	u.Total = max(a.Total, b.Total, u.In+u.Out)
	return u
}

// said returns what the API says; zero for nothing.
func (s *sum) said() model.Usage {
	switch {
	case s.usage.Total > 0:
	case s.bytes > int64(len(s.tail)):
		s.usage = lastUsage(s.tail)
	default:
		s.usage = saidIn(s.tail)
	}
	return s.usage
}

// saidIn returns the usage that some JSON has, or one of its members, which is where APIs say
// it, and of several the last; zero for none. Deeper may be what the client sent, as the
// tools of a request are in the events of its response.
func saidIn(text []byte) (u model.Usage) {
	if !bytes.Contains(text, []byte(`"usage"`)) {
		return u
	}
	take := func(name string, value json.RawMessage) {
		if name != "usage" {
			return
		}
		if said := model.ReadUsage(value); said.Total > 0 {
			u = said
		}
	}
	_ = rawjson.Each(text, func(name string, value json.RawMessage) {
		if take(name, value); name != "usage" {
			_ = rawjson.Each(value, take)
		}
	})
	return u
}

// estimate returns a third of the bytes of the answer's text, which is what
// result.EstimateTokens makes of texts in any script.
func (s *sum) estimate() int64 { return s.count + (s.bytes-s.count*s.shortest+2)/3 }

// lastUsage returns the last usage object in the end of some JSON; zero for none. In
// a string its name would be followed by an escaped quote.
func lastUsage(text []byte) model.Usage {
	const name = `"usage"`
	end := len(text)
	for range maxNames {
		at := bytes.LastIndex(text[:end], []byte(name))
		if at < 0 {
			break
		}
		rest, isName := bytes.CutPrefix(bytes.TrimLeft(text[at+len(name):], " \t\r\n"), []byte(":"))
		if isName {
			if u := model.ReadUsage(rawjson.Leading(rest)); u.Total > 0 {
				return u
			}
		}
		end = at
	}
	return model.Usage{}
}

// maxNames is how many members of that name are looked at, the last ones.
const maxNames = 10
