package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/dragoman-mcp/dragoman/internal/identity/revocation"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// overSocket is the door of responses over a WebSocket, which TestFaultDoors tries as well.
// There is no column for it in docs/faults.md: what is told is what the Responses door tells,
// as events.
var overSocket = modelDoor{
	"/v1/responses", `{"type":"response.create","model":"m","stream":%t,"input":"Go."%s}`,
	`"tools":[{"type":"mcp","server_label":"%s","require_approval":"never"}]`, `"type":"response.completed"`,
}

// inStream are the faults that are found once a response has begun, whose status is then no
// more.
var inStream = []string{"a later round fails", "the answer is none"}

// TestFaultDoorsOverWebSocket: the same is told over a WebSocket, and the connection goes on.
func TestFaultDoorsOverWebSocket(t *testing.T) {
	for fault, f := range doorFaults {
		if f.again || fault == "the body is too large" { // there is no Idempotency-Key; the connection is closed
			continue
		}
		f.stream = true
		if slices.Contains(inStream, fault) {
			f.status = http.StatusOK
		}
		if strings.HasPrefix(f.body, `{"model":"secret"`) || strings.HasPrefix(f.body, `{"model":"m","model"`) {
			f.body = `{"type":"response.create",` + f.body[1:]
		}
		t.Run(fault, func(t *testing.T) { f.at(t, "WebSocket", overSocket) })
	}
}

// dialing opens a connection.
func dialing(t *testing.T, key, url string) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(url, "http"), &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + key}}})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

// askingOver asks over a WebSocket, and returns the status of an error, 200 for none.
func askingOver(t *testing.T, key, url, body string) (status int, answer string, header http.Header) {
	t.Helper()
	conn := dialing(t, key, url)
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(body)); err != nil {
		t.Fatal(err)
	}
	for header = (http.Header{}); ; {
		_, event, err := conn.Read(t.Context())
		if err != nil {
			t.Fatalf("%s: the connection was cut: %v", body, err)
		}
		answer += string(event) + "\n"
		o, err := rawjson.ParseObject(event)
		if err != nil {
			t.Fatal(err)
		}
		kind, _ := rawjson.String(o.Get("type"))
		code := o.Get("status")
		switch {
		case kind == "error" && code != nil:
			if status, err = strconv.Atoi(string(code)); err != nil {
				t.Fatal(err)
			}
			var told map[string]string
			_ = json.Unmarshal(o.Get("headers"), &told)
			for name, value := range told {
				header.Set(name, value)
			}
			return status, answer, header
		case slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, kind):
			return http.StatusOK, answer, header
		}
	}
}

// TestSocketIsGuarded: the key, the page that asks and the host are judged as on every
// route, and a connection ends with its key.
func TestSocketIsGuarded(t *testing.T) {
	s := gated(t)
	ann, id := s.key("ann of many")
	address := "ws" + strings.TrimPrefix(s.url, "http") + "/v1/responses"
	for why, h := range map[string]http.Header{
		"no key":        {},
		"a wrong key":   {"Authorization": {"Bearer nonsense"}},
		"another page":  {"Authorization": {"Bearer " + ann}, "Origin": {"https://evil.example"}},
		"no page of us": {"Authorization": {"Bearer " + ann}, "Origin": {"null"}},
	} {
		conn, res, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: h})
		if err == nil {
			_ = conn.CloseNow()
			t.Errorf("%s: it is open", why)
		} else if res == nil || res.StatusCode != 401 && res.StatusCode != 403 {
			t.Errorf("%s: %v", why, err)
		}
	}
	if status, answer, _ := askingOver(t, ann, s.url+"/v1/responses", `{"type":"response.create","model":"rehearsal","input":"SAY hello"}`); status != 200 || !strings.Contains(answer, "hello") {
		t.Errorf("%d %s", status, answer)
	}
	conn := dialing(t, ann, s.url+"/v1/responses")
	if err := revocation.Revoke(t.Context(), s.ledger.DB, id); err != nil {
		t.Fatal(err)
	}
	_, _, err := conn.Read(context.WithoutCancel(t.Context()))
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("its key is gone: %v", err)
	}
}
