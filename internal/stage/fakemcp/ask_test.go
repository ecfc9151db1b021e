package fakemcp

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// A legacy client is asked in the middle of its call, a modern one with a result.
func TestAsk(t *testing.T) {
	srv := New(Config{Tools: []Tool{{Name: "book", Do: Ask, Question: []byte(`{"message":"Who?"}`)}}})
	out, in := srv.Pipe(t.Context())
	t.Cleanup(func() { in.Close() })
	lines := bufio.NewReader(out)
	exchange := func(send, want string) {
		t.Helper()
		if _, err := io.WriteString(in, send+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Errorf("%s\nwas answered %s (%v)\nwant %s", send, line, err, want)
		}
	}
	exchange(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book"}}`,
		`"id":"question-1","method":"elicitation/create","params":{"message":"Who?"}`)
	exchange(`{"jsonrpc":"2.0","id":"question-1","result":{"action":"decline"}}`,
		`"id":1,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}`)
	modern := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + Modern + `"}`
	exchange(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"book",%s}}`, modern),
		`"resultType":"input_required","requestState":"asked","inputRequests":{"answer":{"method":"elicitation/create","params":{"message":"Who?"}}}`)
	exchange(fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"book","requestState":"asked","inputResponses":{"answer":{"action":"accept"}},%s}}`, modern),
		`"text":"{\"action\":\"accept\"}"`)
	exchange(fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"book","requestState":"other","inputResponses":{"answer":{}},%s}}`, modern),
		`"error"`)
}
