package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// An Upstream is a model's API that gives the answers of a transcript. They begin with a
// status line and headers where they are not a usual one; the header Broken cuts the body
// off, Line-Ends: crlf changes its line ends, and the status 0 is an API that is not there.
type Upstream struct {
	testing.TB
	// Answers are those that were not used.
	Answers []string
	// Asked are the requests that it was sent, each as [Tidy] has it.
	Asked []string
}

// Post takes a request.
func (u *Upstream) Post(_ context.Context, parts [][]byte) (*http.Response, error) {
	body := bytes.Join(parts, nil)
	if err := rawjson.Check(body); err != nil {
		u.Errorf("the upstream was sent malformed JSON: %v\n%s", err, body)
	}
	u.Asked = append(u.Asked, Tidy(body)+"\n")
	if len(u.Answers) == 0 {
		return nil, errors.New("no further answer in the transcript")
	}
	data := u.Answers[0]
	u.Answers = u.Answers[1:]
	resp := &http.Response{StatusCode: 200, Header: http.Header{}}
	if strings.HasPrefix(data, "HTTP ") {
		head, rest, _ := strings.Cut(data, "\n\n")
		data = rest
		lines := strings.Split(head, "\n")
		resp.StatusCode, _ = strconv.Atoi(strings.TrimPrefix(lines[0], "HTTP "))
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			resp.Header.Add(name, value)
		}
	}
	if resp.StatusCode == 0 {
		return nil, errors.New("connection refused")
	}
	if resp.Header.Get("Content-Type") == "" {
		resp.Header.Set("Content-Type", "application/json")
		if strings.HasPrefix(data, "data:") || strings.HasPrefix(data, ":") {
			resp.Header.Set("Content-Type", "text/event-stream")
		}
	}
	if resp.Header.Get("Line-Ends") == "crlf" {
		data = strings.ReplaceAll(data, "\n", "\r\n")
	}
	var content io.Reader = strings.NewReader(data)
	if resp.Header.Get("Broken") != "" {
		content = io.MultiReader(content, broken{})
	}
	resp.Header.Del("Line-Ends")
	resp.Header.Del("Broken")
	resp.Body = io.NopCloser(content)
	return resp, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Tidy leaves out of a body for the upstream what other packages decide: of tools of the
// [Shop] all but their names, and what results say of themselves.
func Tidy(body []byte) string {
	o, err := rawjson.ParseObject(body)
	if err != nil {
		return string(body)
	}
	if tools, err := rawjson.Elements(o.Get("tools")); err == nil {
		for i, raw := range tools {
			tool, _ := rawjson.ParseObject(raw)
			if f, err := rawjson.ParseObject(tool.Get("function")); err == nil && bytes.Contains(f.Get("description"), []byte(ours)) {
				name, _ := rawjson.String(f.Get("name"))
				tools[i] = json.RawMessage("<" + name + ">")
			}
		}
		o.Set("tools", rawjson.AppendArray(nil, tools))
	}
	return WithoutMeta(o.Bytes())
}
