package toolkit

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// A trail writes one JSON line for each call. It never holds the value of an
// argument or of a result.
type trail struct {
	mu  sync.Mutex
	out io.Writer
	buf []byte
}

// An entry is what is known of a call when it is over.
type entry struct {
	request     *Request
	name        string
	arguments   []byte
	outcome, id string
	took        time.Duration
}

func (t *trail) write(server string, e entry) {
	if t == nil || t.out == nil {
		return
	}
	digest := sha256.Sum256(e.arguments)
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf[:0]
	text := func(name, value string) {
		if value == "" {
			return
		}
		if len(b) > 0 {
			b = append(b, ',')
		} else {
			b = append(b, '{')
		}
		b = rawjson.AppendQuote(b, name)
		b = append(b, ':')
		b = rawjson.AppendQuote(b, value)
	}
	text("time", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	text("server", server)
	text(e.request.Kind, e.name)
	text("outcome", e.outcome)
	text("error_id", e.id)
	text("caller", e.request.kind())
	text("user", e.request.User)
	text("key", e.request.Key)
	text("client", e.request.Client)
	text("session", e.request.Session)
	text("arguments_sha256", hex.EncodeToString(digest[:]))
	b = append(b, `,"duration_ms":`...)
	b = strconv.AppendFloat(b, float64(e.took.Microseconds())/1000, 'f', -1, 64)
	b = append(b, "}\n"...)
	t.buf = b
	_, _ = t.out.Write(b) // a full disk must not fail the call; Main checks that the file opens
}
