package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A lineWriter passes lines on.
type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// What Go's HTTP client logs by itself is a line of the log like any other: a peer that
// says more than it was asked writes nothing between lines of JSON.
func TestLibrariesLogAsWeDo(t *testing.T) {
	lines := make(lineWriter, 10)
	defer hearLibraries(slog.New(slog.NewJSONHandler(lines, nil)))()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("\x1b[31m", 500)+"\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	}()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	line := <-lines
	var said struct{ Level, Msg, Line string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.Level != "WARN" || !strings.Contains(said.Line, "Unsolicited") || len(said.Line) > 2*maxLibraryLine {
		t.Errorf("%q: %v", line, err)
	}
}
