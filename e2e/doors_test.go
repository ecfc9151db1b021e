package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestPictureThroughEveryDoor reads a PNG of 203 KB by the official filesystem server,
// which says each result twice, in content and as {"content": …}: at every door the
// bytes of the picture stand where the server put them, or in the one picture that a
// model sees, and nowhere as text.
func TestPictureThroughEveryDoor(t *testing.T) {
	t.Parallel()
	const size = 203_237
	dir := t.TempDir()
	picture := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(picture)
	copy(picture, "\x89PNG\r\n\x1a\n")
	writeFile(t, filepath.Join(dir, "a.png"), string(picture))
	base := base64.StdEncoding.EncodeToString(picture)
	up := record(t)
	g := start(t, up, servers{"files": stdio(t, "@modelcontextprotocol/server-filesystem", dir)}).offers(up, "read_media_file")
	arguments, _ := json.Marshal(map[string]string{"path": filepath.Join(dir, "a.png")})

	answer := g.mcpCall("/mcp", "read_media_file", string(arguments))
	t.Logf("/mcp: %d bytes", len(answer))
	if n := bytes.Count(answer, []byte(base)); n != 2 || len(answer) > 2*len(base)+1000 {
		t.Errorf("/mcp: %d bytes with the picture %d times, want what the server sent", len(answer), n)
	}
	for _, b := range blocksOf(t, answer) {
		if b.Type == "text" {
			t.Errorf("/mcp: a text was added: %.100s", b.Text)
		}
	}

	text, more := g.call("read_media_file", json.RawMessage(arguments))
	t.Logf("/v1/tools/call: %d bytes in the tool message, %d beside it", len(text), len(bytes.Join(rawOf(more), nil)))
	if len(text) > 1000 || len(more) != 1 || strings.Contains(text, base[100:200]) {
		t.Errorf("/v1/tools/call: %d characters and %d messages: %.600s", len(text), len(more), text)
	}

	g.chat("CALL read_media_file " + string(arguments) + "\nTHEN\nSAY done")
	raw := string(up.last().Raw)
	t.Logf("Chat: %d bytes to the model, the picture %d times", len(raw), strings.Count(raw, base[100:200]))
	if n := strings.Count(raw, base[100:200]); n != 1 || !strings.Contains(raw, `"url":"data:image/png;base64,`+base) {
		t.Errorf("Chat: the picture stands %d times in the model's request", n)
	}
}

// TestTextIsNotCutForItsCopies reads a text of 16,689 characters, which that server
// sends twice: it fits, so nothing of it is cut at any door.
func TestTextIsNotCutForItsCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := strings.Repeat("a line of some words, and one more of them\n", 400)[:16_689]
	writeFile(t, filepath.Join(dir, "a.txt"), text)
	up := record(t)
	g := start(t, up, servers{"files": stdio(t, "@modelcontextprotocol/server-filesystem", dir)}).offers(up, "read_text_file")
	arguments, _ := json.Marshal(map[string]string{"path": filepath.Join(dir, "a.txt")})
	answer := g.mcpCall("/mcp", "read_text_file", string(arguments))
	blocks := blocksOf(t, answer)
	t.Logf("/mcp: %d bytes, %d blocks", len(answer), len(blocks))
	if len(blocks) != 1 || blocks[0].Text != text {
		t.Errorf("/mcp: %d blocks, the first with %d characters", len(blocks), utf8.RuneCountInString(blocks[0].Text))
	}
	envelope, _ := g.call("read_text_file", json.RawMessage(arguments))
	t.Logf("/v1/tools/call: %d characters", utf8.RuneCountInString(envelope))
	if g.cut(envelope).Meta.Truncated != nil || strings.Count(envelope, "a line of some words") != strings.Count(text, "a line of some words") {
		t.Errorf("/v1/tools/call: %d characters: %.300s", len(envelope), envelope)
	}
}

// mcpCall calls a tool at an MCP endpoint, in the modern era, and returns its result.
func (g *gateway) mcpCall(path, tool, arguments string) []byte {
	g.t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.Root+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if _, data, ok := bytes.Cut(got, []byte("data: ")); ok { // a stream of one message
		got = bytes.TrimSpace(data)
	}
	var answer struct{ Result json.RawMessage }
	if err != nil || json.Unmarshal(got, &answer) != nil || answer.Result == nil {
		g.t.Fatalf("%s: %v %.500s", tool, err, got)
	}
	return answer.Result
}

// A contentBlock is one of a result's content, as far as it is looked at.
type contentBlock struct{ Type, Text string }

func blocksOf(t *testing.T, answer []byte) []contentBlock {
	t.Helper()
	var result struct{ Content []contentBlock }
	if err := json.Unmarshal(answer, &result); err != nil {
		t.Fatal(err)
	}
	return result.Content
}

func rawOf(messages []json.RawMessage) (raw [][]byte) {
	for _, m := range messages {
		raw = append(raw, m)
	}
	return raw
}
