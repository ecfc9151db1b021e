package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/rawjson"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// TestTranscripts plays each testdata/*.txtar: a server that follows a script,
// and a client that is told what to do. The archive holds
//
//	options  era legacy · level L · changes · elicit REPLY · roots ARRAY · sampling RESULT · pages N · message N
//	client   tools · call NAME ARGS · ask REPLY NAME ARGS · request METHOD PARAMS · list METHOD · ping · era
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
	c, err := Connect(t.Context(), &Pipe{Reader: ourIn, Writer: ourOut}, options(t, part["options"]))
	if err != nil {
		fmt.Fprintf(&out, "connect: %v\n", err)
	} else {
		tools := map[string]*dragoman.Tool{}
		for op := range strings.Lines(part["client"]) {
			synctest.Wait() // what the client does by itself comes first
			fmt.Fprintf(&out, "> %s", op)
			perform(t.Context(), &out, c, strings.TrimSpace(op), tools)
		}
		synctest.Wait() // the server has read what was sent
		_ = c.Close()
	}
	<-ended
	return srv.wire.String(), out.String()
}

func options(t *testing.T, text string) *ClientOptions {
	o := &ClientOptions{Name: "test", Version: "1", Label: "srv"}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		raw := json.RawMessage(value)
		switch key {
		case "era":
			o.Era = Legacy
		case "elicit":
			o.Elicit = replies(raw)
		case "roots":
			o.Roots = func(context.Context) (json.RawMessage, error) { return raw, nil }
		case "sampling":
			o.Sampling = func(context.Context, json.RawMessage) (json.RawMessage, error) { return raw, nil }
		case "pages":
			o.Limits.Pages, _ = rawjson.Int(raw)
		case "message":
			n, _ := rawjson.Int(raw)
			o.Limits.Message = int64(n)
		case "level":
			o.LogLevel = value
		case "changes":
			o.OnListChanged = func(string) {}
		default:
			t.Fatalf("option %q", key)
		}
	}
	return o
}

func replies(raw json.RawMessage) func(context.Context, Question) (Reply, error) {
	return func(context.Context, Question) (Reply, error) {
		action, _ := rawjson.String(object(raw).Get("action"))
		return Reply{Action: action, Content: object(raw).Get("content")}, nil
	}
}

// perform does one line of the client's part.
func perform(ctx context.Context, out io.Writer, c *Client, op string, tools map[string]*dragoman.Tool) {
	verb, rest, _ := strings.Cut(op, " ")
	var call dragoman.Call
	switch verb {
	case "era":
		fmt.Fprintln(out, c.Era(), c.ProtocolVersion())
	case "ping":
		fmt.Fprintln(out, c.Ping(ctx))
	case "tools":
		list, err := c.Tools(ctx)
		if err != nil {
			fmt.Fprintln(out, "error:", err)
		}
		for i, t := range list {
			tools[t.Name] = &list[i]
			if t.Quarantined != nil {
				fmt.Fprintf(out, "%q quarantined: %s\n", t.Name, t.Quarantined.Message)
			} else {
				fmt.Fprintf(out, "%q %s\n", t.Name, t.InputSchema)
			}
		}
	case "list", "request":
		method, params, _ := strings.Cut(rest, " ")
		if verb == "list" {
			l, err := c.List(ctx, method)
			if err != nil {
				fmt.Fprintln(out, "error:", err)
				return
			}
			for _, item := range l.Items {
				fmt.Fprintf(out, "%s\n", item)
			}
			fmt.Fprintf(out, "ttl %s, public %t\n", l.TTL, l.Public)
			return
		}
		res, err := c.Request(ctx, method, json.RawMessage(params))
		if err != nil {
			fmt.Fprintln(out, "error:", err)
			return
		}
		fmt.Fprintf(out, "%s\n", res)
	case "ask":
		var reply string
		reply, rest, _ = strings.Cut(rest, " ")
		call.Ask = replies(json.RawMessage(reply))
		fallthrough
	case "call":
		name, args, _ := strings.Cut(rest, " ")
		if call.Tool = tools[name]; call.Tool == nil {
			call.Tool = &dragoman.Tool{Name: name, Original: name}
		}
		call.Arguments = json.RawMessage(args)
		call.Progress = func(p dragoman.Progress) { fmt.Fprintf(out, "progress %v/%v %s\n", p.Progress, p.Total, p.Message) }
		res, err := c.Call(ctx, call)
		switch {
		case err != nil:
			fmt.Fprintln(out, "error:", err)
		case res.Problem != nil:
			fmt.Fprintln(out, "problem", res.Problem)
		default:
			fmt.Fprintf(out, "failed %t %s\n", res.Failed, res.Content)
		}
	default:
		fmt.Fprintln(out, "no such operation")
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
