package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// TestTranscripts plays each testdata/*.txtar: a server that follows a script,
// and a client that is told what to do. The archive holds
//
//	options  era legacy · level L · changes · can KINDS · elicit REPLY · roots ARRAY · sampling RESULT · pages N · message N
//	client   tools · call NAME ARGS · ask REPLY NAME ARGS · method METHOD PARAMS · request METHOD PARAMS · list METHOD · ping · era
//	server   "on METHOD", then what the server writes; $ID and $TOKEN are those of
//	         the request, "await" reads one more message first, "die" ends it. The
//	         second "on" of a method is for its second request, the last for all
//	         further ones.
//	wire     what went over the wire, → from the client and ← from the server
//	outcome  what the client was told
//
// The last two are written with -update, and are to be read before they are
// committed. Time is that of synctest, so nothing waits.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, part := readTxtar(string(data))
			var wire, outcome string
			synctest.Test(t, func(t *testing.T) { wire, outcome = play(t, part) })
			if *update {
				part["wire"], part["outcome"] = wire, outcome
				for _, name := range []string{"options", "client", "server", "wire", "outcome"} {
					if text, ok := part[name]; ok {
						head += "-- " + name + " --\n" + text
					}
				}
				if err := os.WriteFile(file, []byte(head), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(part["wire"], wire); diff != "" {
				t.Errorf("wire (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(part["outcome"], outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// readTxtar takes a txtar archive apart: a comment, and parts by name.
func readTxtar(text string) (comment string, part map[string]string) {
	part = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(n, " --\n") {
			name = strings.TrimSuffix(n, " --\n")
			part[name] = ""
		} else if name == "" {
			comment += line
		} else {
			part[name] += line
		}
	}
	return comment, part
}

func play(t *testing.T, part map[string]string) (wire, outcome string) {
	theirIn, ourOut := io.Pipe()
	ourIn, theirOut := io.Pipe()
	srv := &script{in: newLines(theirIn), out: theirOut, blocks: blocks(part["server"])}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		srv.run()
		_ = theirOut.Close()
		_, _ = io.Copy(io.Discard, theirIn)
	}()

	var out strings.Builder
	p := &player{out: &out, tools: map[string]*dragoman.Tool{}, replies: map[dragoman.Kind]json.RawMessage{}}
	o := p.options(t, part["options"])
	if strings.Contains(part["client"], "ask ") {
		o.Can |= dragoman.AskForm | dragoman.AskURL
	}
	c, err := Connect(t.Context(), &Pipe{Reader: ourIn, Writer: ourOut}, o)
	if err != nil {
		fmt.Fprintf(&out, "connect: %v\n", err)
	} else {
		p.c = c
		for op := range strings.Lines(part["client"]) {
			synctest.Wait() // what the client does by itself comes first
			fmt.Fprintf(&out, "> %s", op)
			p.perform(t.Context(), strings.TrimSpace(op))
		}
		synctest.Wait() // the server has read what was sent
		_ = c.Close()
	}
	<-ended
	return srv.wire.String(), out.String()
}

// A player does what the client's part says.
type player struct {
	c       *Client
	out     io.Writer
	tools   map[string]*dragoman.Tool
	can     dragoman.Kind // what calls can be asked
	replies map[dragoman.Kind]json.RawMessage
}

func (p *player) options(t *testing.T, text string) *ClientOptions {
	o := &ClientOptions{Name: "test", Version: "1", Label: "srv", Passive: true}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		raw := json.RawMessage(value)
		switch key {
		case "era":
			o.Era = Legacy
		case "elicit":
			p.reply(dragoman.AskForm|dragoman.AskURL, raw)
		case "roots":
			p.reply(dragoman.AskRoots, json.RawMessage(`{"roots":`+value+`}`))
		case "sampling":
			p.reply(dragoman.AskSampling, raw)
		case "can":
			for _, k := range strings.Split(value, "+") {
				o.Can |= kinds[k]
			}
		case "pages":
			o.Limits.Pages, _ = rawjson.Int(raw)
		case "message":
			n, _ := rawjson.Int(raw)
			o.Limits.Message = int64(n)
		case "level":
			o.LogLevel = value
		case "changes":
			o.Passive = false
		default:
			t.Fatalf("option %q", key)
		}
	}
	o.Can |= p.can
	return o
}

var kinds = map[string]dragoman.Kind{
	"form": dragoman.AskForm, "url": dragoman.AskURL, "sampling": dragoman.AskSampling, "roots": dragoman.AskRoots,
}

func (p *player) reply(kind dragoman.Kind, raw json.RawMessage) {
	p.can |= kind
	for _, k := range kinds {
		if kind&k != 0 {
			p.replies[k] = raw
		}
	}
}

// perform does one line of the client's part.
func (p *player) perform(ctx context.Context, op string) {
	verb, rest, _ := strings.Cut(op, " ")
	call := dragoman.Call{Can: p.can}
	replies := p.replies
	switch verb {
	case "era":
		fmt.Fprintln(p.out, p.c.Era(), p.c.ProtocolVersion())
	case "ping":
		fmt.Fprintln(p.out, p.c.Ping(ctx))
	case "tools":
		p.listTools(ctx)
	case "list":
		p.list(ctx, rest)
	case "request":
		method, params, _ := strings.Cut(rest, " ")
		if a, err := p.c.request(ctx, method, json.RawMessage(params)); err != nil {
			fmt.Fprintln(p.out, "error:", err)
		} else {
			fmt.Fprintf(p.out, "%s\n", a.raw)
		}
	case "method":
		method, params, _ := strings.Cut(rest, " ")
		call.Method, call.Arguments = method, json.RawMessage(params)
		p.call(ctx, call, replies)
	case "ask", "call":
		if verb == "ask" {
			var reply string
			reply, rest, _ = strings.Cut(rest, " ")
			replies = maps.Clone(replies)
			replies[dragoman.AskForm], replies[dragoman.AskURL] = json.RawMessage(reply), json.RawMessage(reply)
			call.Can |= dragoman.AskForm | dragoman.AskURL
		}
		name, args, _ := strings.Cut(rest, " ")
		if call.Tool = p.tools[name]; call.Tool == nil {
			call.Tool = &dragoman.Tool{Name: name, Original: name}
		}
		call.Arguments = json.RawMessage(args)
		p.call(ctx, call, replies)
	default:
		fmt.Fprintln(p.out, "no such operation")
	}
}

func (p *player) listTools(ctx context.Context) {
	if err := p.c.refresh(ctx, "tools"); err != nil {
		fmt.Fprintln(p.out, "error:", err)
		return
	}
	l, _ := p.c.List(ctx)
	for i := range l.Tools.All() {
		t := &l.Tools.All()[i]
		p.tools[t.Name] = t
		if t.Quarantined != nil {
			fmt.Fprintf(p.out, "%q quarantined: %s\n", t.Name, t.Quarantined.Message)
		} else {
			fmt.Fprintf(p.out, "%q %s\n", t.Name, t.InputSchema)
		}
	}
}

func (p *player) list(ctx context.Context, method string) {
	l, err := p.c.list(ctx, method)
	if err != nil {
		fmt.Fprintln(p.out, "error:", err)
		return
	}
	for _, item := range l.items {
		fmt.Fprintf(p.out, "%s\n", item)
	}
	fmt.Fprintf(p.out, "ttl %s, public %t\n", l.ttl, l.public)
}

// call makes a call, and makes it again with the answers as long as it asks.
func (p *player) call(ctx context.Context, call dragoman.Call, replies map[dragoman.Kind]json.RawMessage) {
	if call.Tool != nil {
		call.Progress = func(v dragoman.Progress) {
			fmt.Fprintf(p.out, "progress %v/%v %s\n", v.Progress, v.Total, v.Message)
		}
	}
	for {
		res, err := p.c.Call(ctx, call)
		switch {
		case err != nil:
			fmt.Fprintf(p.out, "error: %v (ran: %s)\n", err, res.Ran)
		case res.Problem != nil:
			fmt.Fprintf(p.out, "problem %v (ran: %s)\n", res.Problem, res.Ran)
		case res.Asks == nil:
			fmt.Fprintf(p.out, "failed %t %s\n", res.Failed, res.Content)
		default:
			fmt.Fprintf(p.out, "asks, held %t, after %s\n", res.Asks.Held, res.Asks.After)
			call.Answers = &dragoman.Answers{State: res.Asks.State, Ran: res.Ran, Replies: map[string]json.RawMessage{}}
			for _, q := range res.Asks.Questions {
				fmt.Fprintf(p.out, "  %s %s %s\n", q.Key, q.Kind, q.Params)
				call.Answers.Replies[q.Key] = replies[q.Kind]
			}
			<-time.After(res.Asks.After)
			continue
		}
		return
	}
}

// A script is a server that does as it was told.
type script struct {
	in     *lineReader
	out    io.Writer
	blocks map[string][][]string
	wire   bytes.Buffer
}

func blocks(text string) map[string][][]string {
	all := map[string][][]string{}
	method := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m, ok := strings.CutPrefix(line, "on "); ok {
			method = m
			all[method] = append(all[method], nil)
		} else if n := len(all[method]); n > 0 {
			all[method][n-1] = append(all[method][n-1], line)
		}
	}
	return all
}

func (s *script) read() ([]byte, bool) {
	line, err := s.in.next()
	if err != nil {
		return nil, false
	}
	fmt.Fprintf(&s.wire, "→ %s\n", line)
	return line, true
}

func (s *script) run() {
	for {
		line, ok := s.read()
		if !ok {
			return
		}
		o := object(line)
		method, _ := rawjson.String(o.Get("method"))
		list := s.blocks[method]
		if len(list) == 0 {
			continue
		}
		if len(list) > 1 {
			s.blocks[method] = list[1:]
		}
		token := object(object(o.Get("params")).Get("_meta")).Get("progressToken")
		fill := strings.NewReplacer("$ID", string(o.Get("id")), "$TOKEN", string(token))
		for _, l := range list[0] {
			switch l {
			case "await":
				if _, ok := s.read(); !ok {
					return
				}
			case "die":
				return
			default:
				l = fill.Replace(l)
				fmt.Fprintf(&s.wire, "← %s\n", l)
				if _, err := io.WriteString(s.out, l+"\n"); err != nil {
					return
				}
			}
		}
	}
}
