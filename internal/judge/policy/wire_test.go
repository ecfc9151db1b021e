package policy

import (
	"encoding/json"
	"math/rand/v2"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/stage/fakemcp"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// TestServerGetsWhatRulesSaw sends arguments over both transports to a server that
// says what it got: the value that the rules saw, whatever was spelled how.
func TestServerGetsWhatRulesSaw(t *testing.T) {
	fake := fakemcp.New(fakemcp.Config{Tools: []fakemcp.Tool{{Name: "echo", Do: fakemcp.Echo}}})
	server := httptest.NewServer(fake)
	defer server.Close()
	in, out := fake.Pipe(t.Context())
	for name, transport := range map[string]mcp.Transport{"lines": &mcp.Pipe{Reader: in, Writer: out}, "http": mcp.HTTP{URL: server.URL}} {
		client, err := mcp.Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		list, err := client.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(7, 8))
		for range 150 {
			document := []byte(object(random, 4))
			if !agree(t, document) {
				continue
			}
			res, err := client.Call(t.Context(), dragoman.Call{Tool: list.Tools.Exact("echo"), Arguments: document})
			if err != nil || res.Problem != nil {
				t.Fatalf("%s: %v, %v", name, err, res.Problem)
			}
			seen, _, _ := record(document)
			got, _, err := record(json.RawMessage(echoed(t, res.Content)))
			if err != nil || !got.Equal(seen) {
				t.Fatalf("%s: %q: the rules saw %s and the server got %s, %v", name, document, seen, got, err)
			}
		}
	}
}

// echoed returns the text of a result.
func echoed(t *testing.T, result []byte) string {
	t.Helper()
	o, err := rawjson.ParseObject(result)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := rawjson.Elements(o.Get("content"))
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%s", result)
	}
	block, err := rawjson.ParseObject(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	text, _ := rawjson.String(block.Get("text"))
	return text
}
